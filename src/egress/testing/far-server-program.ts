// For tests: runs far-server.ts as a program, so that it can run in another network namespace. The program reads its certificates
// from standard input.
import { text } from 'node:stream/consumers'
import { startFarServer } from './far-server.ts'

for (const each of JSON.parse(await text(process.stdin))) await startFarServer(each, { host: each.address, port: 443 })
process.stdout.write('ready\n')
