import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isWithin } from '#src/kit/networks.ts'
import { hashKey } from './auth/secret.ts'
import { loadConfig } from './config.ts'
import { createEncryption, newEncryptionKey, readEncryptionKey } from './storage/encryption.ts'

const good = {
  ALCOVE_DATABASE_URL: 'postgresql://alcove@localhost/alcove?host=/run/postgres',
  ALCOVE_LISTEN: '127.0.0.1:3000',
  ALCOVE_PUBLIC_URL: 'http://localhost:3000/',
  ALCOVE_PROXY_URL: 'http://localhost:3001',
  ALCOVE_PROXY_KEY: 'p'.repeat(32),
  ALCOVE_RUNNER_KEY: 'r'.repeat(32),
  ALCOVE_MOST_WARM: '8',
  ALCOVE_OVERCOMMIT: '64,8,8',
  ALCOVE_ENCRYPTION_KEY: newEncryptionKey(),
}

suite('the settings of control', () => {
  test('`loadConfig` reads control’s settings, and keeps the keys of the gate and the runner only as hashes', () => {
    const { databaseUrl, listen, firstKey, settings } = loadConfig(good)
    assert.equal(databaseUrl, good.ALCOVE_DATABASE_URL)
    assert.deepEqual(listen, { host: '127.0.0.1', port: 3000 })
    assert.equal(firstKey, undefined)
    assert.deepEqual([settings.publicUrl, settings.proxyUrl], ['http://localhost:3000', 'http://localhost:3001'])
    assert.equal(settings.proxyKeyHash, hashKey(good.ALCOVE_PROXY_KEY))
    assert.ok(!JSON.stringify(settings).includes(good.ALCOVE_RUNNER_KEY))
  })

  test('control needs no key of a gate or runner if control’s machine has no gate or runner', () => {
    const { ALCOVE_PROXY_KEY: _proxy, ALCOVE_RUNNER_KEY: _runner, ...alone } = good
    const { proxyKeyHash, runnerKeyHash } = loadConfig(alone).settings
    assert.deepEqual([proxyKeyHash, runnerKeyHash], [undefined, undefined])
  })

  test('control listens for hosts only at the host and port that ALCOVE_HOSTS_LISTEN names', () => {
    assert.equal(loadConfig(good).settings.hostsListen, undefined)
    const read = (value: string) => loadConfig({ ...good, ALCOVE_HOSTS_LISTEN: value }).settings.hostsListen
    assert.deepEqual(read('[fd00::1]:4603'), { host: 'fd00::1', port: 4603 })
    for (const wrong of ['4603', 'host:', 'host:70000'])
      assert.throws(() => read(wrong), /ALCOVE_HOSTS_LISTEN is not usable/)
  })

  test('`loadConfig` encrypts with ALCOVE_ENCRYPTION_KEY, and can also decrypt with the older keys', () => {
    const older = newEncryptionKey()
    const before = createEncryption([readEncryptionKey(older)!]).encrypt('a', 'text')
    const { encryption } = loadConfig({ ...good, ALCOVE_OLDER_ENCRYPTION_KEYS: `${newEncryptionKey()},${older}` })
    assert.equal(encryption.decrypt('a', before), 'text')
    const own = createEncryption([readEncryptionKey(good.ALCOVE_ENCRYPTION_KEY)!])
    assert.equal(own.decrypt('a', encryption.encrypt('a', 'text')), 'text')
  })

  test('an invalid encryption key is reported without being shown', () => {
    for (const wrong of [{ ALCOVE_ENCRYPTION_KEY: 'hunter2' }, { ALCOVE_OLDER_ENCRYPTION_KEYS: 'hunter2' }]) {
      assert.throws(
        () => loadConfig({ ...good, ...wrong }),
        ({ message }: Error) =>
          message ===
          `${Object.keys(wrong)[0]} is not usable: 32 bytes as base64, with which control encrypts secrets in the database`,
      )
    }
  })

  test('a rate limit is set as calls/seconds; by default there are no rate limits and no trusted proxies', () => {
    assert.deepEqual([loadConfig(good).settings.rateLimits, loadConfig(good).settings.trustedProxies], [{}, 0])
    const told = { ALCOVE_RATE_LIMIT_SANDBOX_CREATE: '10/60', ALCOVE_TRUSTED_PROXIES: '2' }
    const { rateLimits, trustedProxies } = loadConfig({ ...good, ...told }).settings
    assert.deepEqual([rateLimits, trustedProxies], [{ 'sandbox-create': { limit: 10, ttlSeconds: 60 } }, 2])
    for (const [name, value] of [
      ['ALCOVE_RATE_LIMIT_ANONYMOUS', '10'],
      ['ALCOVE_RATE_LIMIT_FAILED_AUTH', '0/60'],
      ['ALCOVE_TRUSTED_PROXIES', '-1'],
    ] as const) {
      assert.throws(() => loadConfig({ ...good, [name]: value }), new RegExp(`${name} is not usable`))
    }
  })

  test('ALCOVE_OVERCOMMIT is three numbers from 1 to 1,000,000, for cpu, memory and disk', () => {
    const read = (value: string) => loadConfig({ ...good, ALCOVE_OVERCOMMIT: value }).overcommit
    assert.deepEqual(read('1,2.5,1000000'), { cpu: 1, memory: 2.5, disk: 1_000_000 })
    for (const wrong of ['64', '64,8', '64,8,8,8', '0.5,8,8', '64,8,1000001', '64,x,8'])
      assert.throws(() => read(wrong), /ALCOVE_OVERCOMMIT is not usable/, wrong)
  })

  test('ALCOVE_ALLOW_PRIVATE_TARGETS is a list of networks, and is empty by default', () => {
    assert.equal(isWithin(loadConfig(good).settings.privateTargets, '127.0.0.1'), false)
    const { settings } = loadConfig({ ...good, ALCOVE_ALLOW_PRIVATE_TARGETS: '127.0.0.0/8' })
    assert.equal(isWithin(settings.privateTargets, '127.0.0.1'), true)
    const wrong = { ...good, ALCOVE_ALLOW_PRIVATE_TARGETS: '127.0.0.0/99' }
    assert.throws(() => loadConfig(wrong), /ALCOVE_ALLOW_PRIVATE_TARGETS is not usable/)
  })

  test('ALCOVE_REGISTRIES treats index.docker.io as docker.io; by default every registry is allowed', () => {
    assert.deepEqual(loadConfig(good).settings.registries, { plain: [], private: [], allowed: undefined })
    const set = { ALCOVE_PRIVATE_REGISTRIES: 'Registry.corp:5000', ALCOVE_REGISTRIES: 'index.docker.io, ghcr.io' }
    const { registries } = loadConfig({ ...good, ...set }).settings
    assert.deepEqual(registries, { plain: [], private: ['registry.corp:5000'], allowed: ['docker.io', 'ghcr.io'] })
  })

  test('ALCOVE_AUDIT_DAYS is 90 by default; a value that is not a number of days is refused', () => {
    const daysOf = (given?: string) =>
      loadConfig({ ...good, ...(given === undefined ? {} : { ALCOVE_AUDIT_DAYS: given }) }).settings.auditDays
    assert.deepEqual([daysOf(), daysOf('7')], [90, 7])
    for (const wrong of ['0', '-1', '1.5', 'ever', '99999']) assert.throws(() => daysOf(wrong), /ALCOVE_AUDIT_DAYS/)
  })

  test('samples of resource use are kept for two days by default', () => {
    const hoursOf = (given?: string) =>
      loadConfig({ ...good, ...(given === undefined ? {} : { ALCOVE_METER_HOURS: given }) }).settings.meterHours
    assert.deepEqual([hoursOf(), hoursOf('168')], [48, 168])
    for (const wrong of ['0', '-1', '1.5', 'ever', '1000']) assert.throws(() => hoursOf(wrong), /ALCOVE_METER_HOURS/)
  })

  test('a volume has 10 GiB by default', () => {
    const sizeOf = (given?: string) =>
      loadConfig({ ...good, ...(given === undefined ? {} : { ALCOVE_VOLUME_GIB: given }) }).settings.volumeGiB
    assert.deepEqual([sizeOf(), sizeOf('1'), sizeOf('500')], [10, 1, 500])
    for (const wrong of ['0', '-1', '1.5', 'all', '1000000']) assert.throws(() => sizeOf(wrong), /ALCOVE_VOLUME_GIB/)
  })

  test('ALCOVE_SMTP_URL is optional; if ALCOVE_MAIL_FROM is missing, the error hides the password in the URL', () => {
    const { smtp } = loadConfig({ ...good, ALCOVE_SMTP_URL: 'smtps://me:x@mail.test', ALCOVE_MAIL_FROM: 'a@b.c' })
    assert.deepEqual([smtp?.host, smtp?.port, smtp?.from], ['mail.test', 465, 'a@b.c'])
    assert.equal(loadConfig(good).smtp, undefined)
    assert.throws(
      () => loadConfig({ ...good, ALCOVE_SMTP_URL: 'smtps://me:hidden@mail.test' }),
      ({ message }: Error) => /^ALCOVE_SMTP_URL needs/.test(message) && !message.includes('hidden'),
    )
  })

  test('control sends webhooks itself by default, and through Svix if a Svix token is set', () => {
    const choose = (more: Record<string, string>) => loadConfig({ ...good, ...more }).settings.webhooks
    assert.deepEqual(choose({}), { kind: 'embedded' })
    assert.deepEqual(choose({ ALCOVE_WEBHOOK_PROVIDER: 'none' }), { kind: 'none' })
    const svix = { ALCOVE_WEBHOOK_PROVIDER: 'svix', ALCOVE_SVIX_TOKEN: 'token' }
    assert.deepEqual(choose(svix), { kind: 'svix', url: 'https://api.svix.com', token: 'token' })
    assert.equal('url' in choose({ ...svix, ALCOVE_SVIX_URL: 'http://svix:8071/' }), true)
    assert.throws(() => choose({ ALCOVE_WEBHOOK_PROVIDER: 'svix' }), /ALCOVE_SVIX_TOKEN is missing/)
    assert.throws(() => choose({ ...svix, ALCOVE_SVIX_URL: 'ftp://svix' }), /ALCOVE_SVIX_URL is not usable/)
    assert.throws(() => choose({ ALCOVE_WEBHOOK_PROVIDER: 'other' }), /ALCOVE_WEBHOOK_PROVIDER is not usable/)
  })

  test('with ALCOVE_SSH_GATEWAY_KEY, control has an SSH gateway, and ALCOVE_SSH_URL must be valid', () => {
    assert.equal(loadConfig(good).settings.sshGateway, undefined)
    const set = { ...good, ALCOVE_SSH_GATEWAY_KEY: 'k', ALCOVE_SSH_URL: 'ssh://box.example:2222' }
    const { sshGateway } = loadConfig({ ...set, ALCOVE_SSH_PUBLIC_HOST_KEY: 'ssh-ed25519 AAAA' }).settings
    const expected = { keyHash: hashKey('k'), host: 'box.example', port: 2222, hostKey: 'ssh-ed25519 AAAA' }
    assert.deepEqual(sshGateway, expected)
    assert.throws(() => loadConfig({ ...set, ALCOVE_SSH_URL: 'box' }), /ALCOVE_SSH_URL is not usable/)
  })

  test('all invalid settings are reported together in one error', () => {
    assert.throws(
      () => loadConfig({ ALCOVE_LISTEN: 'nowhere', ALCOVE_PUBLIC_URL: 'localhost' }),
      ({ message }: Error) => {
        for (const name of ['DATABASE_URL', 'PROXY_URL', 'ENCRYPTION_KEY']) {
          assert.match(message, new RegExp(`ALCOVE_${name} is missing`))
        }
        for (const name of ['LISTEN', 'PUBLIC_URL']) assert.match(message, new RegExp(`ALCOVE_${name} is not usable`))
        return true
      },
    )
  })
})
