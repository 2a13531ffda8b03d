import { hashKey } from '#src/control/auth/secret.ts'
import type { Settings } from '#src/control/parts.ts'
import { createEncryption } from '#src/control/storage/encryption.ts'
import { noNetworks, readNetworks } from '#src/kit/networks.ts'
import { keys } from './people.ts'

export const testSettings: Settings = {
  publicUrl: 'http://control.test:3000',
  proxyUrl: 'http://proxy.test:3001',
  proxyKeyHash: hashKey(keys.proxy),
  runnerKeyHash: hashKey(keys.runner),
  collectorKeyHash: hashKey(keys.collector),
  sshGateway: { keyHash: hashKey(keys['ssh-gateway']), host: 'ssh.test', port: 3002, hostKey: 'ssh-ed25519 AAAA' },
  hostsListen: undefined,
  defaultRegionMayChange: false,
  version: '0.0.0-test',
  defaultSnapshot: 'default',
  environment: 'test',
  privateTargets: noNetworks,
  registries: { plain: [], private: [], allowed: undefined },
  ssoForAll: false,
  rateLimits: {},
  trustedProxies: 0,
  dashboardUrl: undefined,
  dashboardDirectory: undefined,
  auditDays: 90,
  lostAfterMinutes: 10,
  meterHours: 48,
  volumeGiB: 10,
  webhooks: { kind: 'embedded' },
  // The list of issuers is empty here: `startControl` adds the issuer of test/control/issuer.ts.
  identity: { issuers: [], audience: 'alcove', clientId: 'alcove', clockSkewSeconds: 30, keyCooldownSeconds: 30 },
}

const encryptionKey = Buffer.alloc(32, 'test')

/** The encryption that all control processes of a test share, because they read each other's encrypted data in the database. */
export const testEncryption = createEncryption([encryptionKey])
export const testEncryptionKey = encryptionKey.toString('base64')

/** The networks that control may call in a test, because the test's own servers are on this machine. */
export const loopback = readNetworks('127.0.0.0/8') ?? noNetworks
