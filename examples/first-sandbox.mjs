// The first thing to try: a sandbox, a command, some Python, and gone again.
//
//   npm install @daytona/sdk@0
//   DAYTONA_API_URL=http://127.0.0.1:4600/api DAYTONA_API_KEY=$(./alcove key) node examples/first-sandbox.mjs
import { Daytona } from '@daytona/sdk'

const daytona = new Daytona()
const sandbox = await daytona.create()
try {
  const command = await sandbox.process.executeCommand('echo "hello from $(hostname)"')
  console.log(command.result.trim())
  const code = await sandbox.process.codeRun('print(sum(range(101)))')
  console.log(code.result.trim())
} finally {
  await sandbox.delete()
}
