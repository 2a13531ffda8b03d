import { hashKey } from '#src/control/auth/secret.ts'
import type { Settings } from '#src/control/parts.ts'
import { keys } from './people.ts'

export const testSettings: Settings = {
  publicUrl: 'http://control.test:3000',
  proxyUrl: 'http://proxy.test:3001',
  proxyKeyHash: hashKey(keys.proxy),
  runnerKeyHash: hashKey(keys.runner),
  version: '0.0.0-test',
  defaultSnapshot: 'default',
  environment: 'test',
}
