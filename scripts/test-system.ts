// Prepares this machine for tests that start programs: installs system packages and builds the C programs. scripts/test.ts starts
// this script.
import { requiredPackages } from '#src/doctor/packages.ts'
import { Complaint } from '#src/up/complaint.ts'
import { readUpConfig } from '#src/up/config.ts'
import { buildNativePrograms } from '#src/up/native-programs.ts'
import { ensurePackages, hostNeeding } from '#src/up/system-packages.ts'
import { testPackages } from './test-packages.ts'

try {
  if (process.getuid?.() === 0) ensurePackages(console.log, hostNeeding([...requiredPackages, ...testPackages]))
  readUpConfig(process.env)
  await buildNativePrograms(console.log)
} catch (error) {
  if (!(error instanceof Complaint)) throw error
  console.error(error.message)
  process.exitCode = 1
}
