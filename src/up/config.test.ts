import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { listUnknownSettings, readUpConfig } from './config.ts'

suite('settings of up', () => {
  const s3 = { ALCOVE_ARCHIVE_STORE: 's3://box', ALCOVE_ARCHIVE_S3_KEY: 'me', ALCOVE_ARCHIVE_S3_SECRET: 'hidden' }

  test('`up` passes the archive store’s settings to the runner unchanged', () => {
    assert.deepEqual(readUpConfig({}).archive, {})
    assert.deepEqual(readUpConfig(s3).archive, s3)
    const directory = { ...s3, ALCOVE_ARCHIVE_STORE: 'file:///srv/archives' }
    assert.deepEqual(readUpConfig(directory).archive, { ALCOVE_ARCHIVE_STORE: 'file:///srv/archives' })
  })

  test('`up` passes ALCOVE_ALLOW_PRIVATE_TARGETS to control, and refuses an invalid one', () => {
    assert.deepEqual(readUpConfig({}).controlSettings, {})
    const set = { ALCOVE_ALLOW_PRIVATE_TARGETS: '10.0.0.0/8,::1' }
    assert.deepEqual(readUpConfig(set).controlSettings, set)
    assert.throws(() => readUpConfig({ ALCOVE_ALLOW_PRIVATE_TARGETS: 'localhost' }), /ALCOVE_ALLOW_PRIVATE_TARGETS/)
  })

  test('`up` passes the settings for the mail server to control unchanged', () => {
    const mail = { ALCOVE_SMTP_URL: 'smtp://me:hidden@mail.example.com', ALCOVE_MAIL_FROM: 'a@b.c' }
    assert.deepEqual(readUpConfig(mail).controlSettings, mail)
  })

  test('`up` passes rate limits to control, and refuses invalid ones before anything starts', () => {
    const set = { ALCOVE_RATE_LIMIT_AUTHENTICATED: '1000/60', ALCOVE_TRUSTED_PROXIES: '1' }
    assert.deepEqual(readUpConfig(set).controlSettings, set)
    assert.throws(() => readUpConfig({ ALCOVE_RATE_LIMIT_ANONYMOUS: '10/0' }), /ALCOVE_RATE_LIMIT_ANONYMOUS must be/)
    assert.throws(() => readUpConfig({ ALCOVE_TRUSTED_PROXIES: 'yes' }), /ALCOVE_TRUSTED_PROXIES must be/)
  })

  test('`up` passes the webhook provider to control; the provider Svix needs the setting ALCOVE_SVIX_TOKEN', () => {
    const set = { ALCOVE_WEBHOOK_PROVIDER: 'svix', ALCOVE_SVIX_TOKEN: 'token' }
    assert.deepEqual(readUpConfig(set).controlSettings, set)
    assert.throws(() => readUpConfig({ ALCOVE_WEBHOOK_PROVIDER: 'svix' }), /ALCOVE_SVIX_TOKEN/)
    assert.throws(() => readUpConfig({ ALCOVE_WEBHOOK_PROVIDER: 'other' }), /embedded, svix, none/)
  })

  test('`up` refuses an invalid metering interval or registry credential before anything starts', () => {
    for (const meter of ['0', '60', '3600']) {
      const set = { ALCOVE_METER_SECONDS: meter }
      assert.deepEqual(readUpConfig(set).runnerSettings, set)
    }
    for (const meter of ['-1', '1.5', '3601', '1m']) {
      assert.throws(() => readUpConfig({ ALCOVE_METER_SECONDS: meter }), /ALCOVE_METER_SECONDS must be/, meter)
    }
    const directory = mkdtempSync(join(tmpdir(), 'alcove-config-'))
    after(() => rmSync(directory, { recursive: true, force: true }))
    const set = { ALCOVE_REGISTRY_AUTH: join(directory, 'auth.json') }
    assert.throws(() => readUpConfig(set), /ALCOVE_REGISTRY_AUTH must be a readable file; .*ENOENT/)
    writeFileSync(set.ALCOVE_REGISTRY_AUTH, '{"auths":{"registry.example":{"auth":"bWU6aGlkZGVu"}}')
    assert.throws(
      () => readUpConfig(set),
      ({ message }) => /ALCOVE_REGISTRY_AUTH must be .*not a JSON object/.test(message) && !/bWU6/.test(message),
    )
    writeFileSync(set.ALCOVE_REGISTRY_AUTH, '{"auths":{"registry.example":{"auth":"bWU6aGlkZGVu"}}}')
    assert.deepEqual(readUpConfig(set).runnerSettings, set)
  })

  test('`up` gives control the volume size and the runner the volume directory; an error names the setting', () => {
    const set = { ALCOVE_VOLUME_GIB: '50', ALCOVE_VOLUMES_DIR: '/mnt/shared' }
    const { controlSettings, runnerSettings } = readUpConfig(set)
    assert.deepEqual(
      [controlSettings, runnerSettings],
      [{ ALCOVE_VOLUME_GIB: '50' }, { ALCOVE_VOLUMES_DIR: '/mnt/shared' }],
    )
    for (const size of ['0', '-1', '1.5', 'x', '1000000'])
      assert.throws(() => readUpConfig({ ALCOVE_VOLUME_GIB: size }), /ALCOVE_VOLUME_GIB must be/, size)
    assert.throws(() => readUpConfig({ ALCOVE_VOLUMES_DIR: 'shared' }), /ALCOVE_VOLUMES_DIR must be/)
  })

  test('ALCOVE_PUBLIC_URL and ALCOVE_PROXY_URL must be origins, and either both or neither must be set', () => {
    const proxy = 'https://sandboxes.example'
    readUpConfig({ ALCOVE_PUBLIC_URL: 'https://box.example/', ALCOVE_PROXY_URL: proxy })
    for (const url of [
      'box.example',
      'ftp://box.example',
      'https://box.example/api',
      'https://me@box.example',
      'https://box.example?x',
    ]) {
      assert.throws(
        () => readUpConfig({ ALCOVE_PUBLIC_URL: url, ALCOVE_PROXY_URL: proxy }),
        /ALCOVE_PUBLIC_URL must/,
        url,
      )
      assert.throws(
        () => readUpConfig({ ALCOVE_PUBLIC_URL: proxy, ALCOVE_PROXY_URL: url }),
        /ALCOVE_PROXY_URL must/,
        url,
      )
    }
    assert.throws(() => readUpConfig({ ALCOVE_PUBLIC_URL: 'https://box.example' }), /set both/)
    assert.throws(() => readUpConfig({ ALCOVE_PROXY_URL: proxy }), /set both/)
  })

  test('ALCOVE_SSH_LISTEN is `off` or an address with a port; the error for another value names the setting', () => {
    assert.deepEqual(readUpConfig({}).ssh, {})
    const given = { ALCOVE_SSH_LISTEN: '0.0.0.0:2222', ALCOVE_SSH_URL: 'ssh://box.example' }
    assert.deepEqual(readUpConfig(given).ssh, {
      listen: { host: '0.0.0.0', port: 2222 },
      publicUrl: 'ssh://box.example',
    })
    assert.deepEqual(readUpConfig({ ALCOVE_SSH_LISTEN: 'off' }).ssh, { listen: 'off' })
    for (const wrong of ['2222', 'box', 'box:0', 'box:99999', 'a b:22', '/run/x']) {
      assert.throws(() => readUpConfig({ ALCOVE_SSH_LISTEN: wrong }), /ALCOVE_SSH_LISTEN must be/, wrong)
    }
    assert.throws(() => readUpConfig({ ALCOVE_SSH_URL: 'http://box' }), /ALCOVE_SSH_URL must be/)
  })

  test('the list of unknown settings has only ALCOVE_ variables that are not settings', () => {
    const known = {
      ...s3,
      ALCOVE_PUBLIC_URL: 'x',
      ALCOVE_OVERCOMMIT: '',
      ALCOVE_RATE_LIMIT_ANONYMOUS: '1/1',
      ALCOVE_RUNNER_KEY: 'x',
    }
    assert.deepEqual(listUnknownSettings({ ...known, PATH: '/bin', ALCOVE_LISTEN: 'x', ALCOVE_REGISTRY: 'x' }), [
      'ALCOVE_LISTEN',
      'ALCOVE_REGISTRY',
    ])
  })

  test('all invalid settings are reported together, and the report shows no secrets', () => {
    const wrong = {
      ...s3,
      ALCOVE_ARCHIVE_S3_KEY: '',
      ALCOVE_LOG_LEVEL: 'loud',
      ALCOVE_CACHE_DIR: 'here',
      ALCOVE_SMTP_URL: 'smtp://me:hidden@mail.example.com',
    }
    assert.throws(
      () => readUpConfig(wrong),
      ({ message }: Error) => {
        assert.deepEqual(
          message.split('\n').map((line) => line.split(' ')[0]),
          ['ALCOVE_LOG_LEVEL', 'ALCOVE_CACHE_DIR', 'ALCOVE_SMTP_URL', 'ALCOVE_ARCHIVE_STORE'],
        )
        return !message.includes('hidden')
      },
    )
  })
})
