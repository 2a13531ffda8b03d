import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { instanceOf } from '#src/kit/instance.ts'
import { loadConfig } from './config.ts'

suite('settings of the runner', () => {
  test('one error message lists all wrong and all missing settings of the runner', () => {
    assert.throws(
      () => loadConfig({ ALCOVE_CONTROL_URL: 'nonsense', ALCOVE_RUNNER_SOCKET_GID: '-1' }),
      (error: Error) => {
        assert.deepEqual(
          error.message.split('\n').map((line) => line.split(':')[0]),
          [
            'ALCOVE_RUNNER_DIR is missing',
            'ALCOVE_CONTROL_URL is not usable',
            'ALCOVE_RUNNER_KEY is missing',
            'ALCOVE_RUNNER_SOCKET_GID is not usable',
          ],
        )
        return true
      },
    )
  })

  const told = {
    ALCOVE_RUNNER_DIR: '/nowhere/data/runner',
    ALCOVE_CONTROL_URL: 'http://127.0.0.1:3000',
    ALCOVE_RUNNER_KEY: 'k',
    ALCOVE_RUNNER_SOCKET_GID: '7',
  }

  test('by default archives are in the data directory; an S3 store has settings for its URL, key and secret', () => {
    assert.deepEqual(loadConfig(told).archiveStore, { kind: 'directory', path: '/nowhere/data/archive' })
    const elsewhere = loadConfig({ ...told, ALCOVE_ARCHIVE_STORE: 'file:///srv/archives' })
    assert.deepEqual(elsewhere.archiveStore, { kind: 'directory', path: '/srv/archives' })
    const key = { ALCOVE_ARCHIVE_S3_KEY: 'me', ALCOVE_ARCHIVE_S3_SECRET: 'hidden' }
    const { archiveStore } = loadConfig({ ...told, ALCOVE_ARCHIVE_STORE: 's3://box/x?endpoint=http://h:1', ...key })
    assert.deepEqual(archiveStore.kind === 's3' && [archiveStore.bucket, archiveStore.secret], ['box', 'hidden'])
  })

  test('by default the runner measures every minute what sandboxes use; the setting 0 disables that', () => {
    const secondsOf = (given?: string) =>
      loadConfig({ ...told, ...(given === undefined ? {} : { ALCOVE_METER_SECONDS: given }) }).meterSeconds
    assert.deepEqual([secondsOf(), secondsOf('10'), secondsOf('0')], [60, 10, 0])
    for (const wrong of ['-1', '1.5', '3601', 'x']) assert.throws(() => secondsOf(wrong), /ALCOVE_METER_SECONDS/)
  })

  test('by default each sandbox may read and write its disk at 200 MiB a second; 0 disables the limit', () => {
    const speedOf = (given?: string) =>
      loadConfig({ ...told, ...(given === undefined ? {} : { ALCOVE_DISK_MIB_PER_SECOND: given }) })
        .diskMebibytesPerSecond
    assert.deepEqual([speedOf(), speedOf('50'), speedOf('0')], [200, 50, 0])
    for (const wrong of ['-1', '1.5', '1000000', 'x']) assert.throws(() => speedOf(wrong), /ALCOVE_DISK_MIB/)
  })

  test('new volumes are on the runner’s disk by default, or in a directory set by its absolute path', () => {
    assert.equal(loadConfig(told).volumesDirectory, undefined)
    assert.equal(loadConfig({ ...told, ALCOVE_VOLUMES_DIR: '/mnt/shared' }).volumesDirectory, '/mnt/shared')
    assert.throws(() => loadConfig({ ...told, ALCOVE_VOLUMES_DIR: 'shared' }), /ALCOVE_VOLUMES_DIR must be/)
  })

  test('a runner with certificates needs a key only if the URL of control is http, not if it is https', () => {
    const { ALCOVE_RUNNER_KEY: _key, ...withoutKey } = { ...told, ALCOVE_CERTIFICATES_DIR: '/certificates' }
    const { runnerKey } = loadConfig({ ...withoutKey, ALCOVE_CONTROL_URL: 'https://10.0.0.7:4603' })
    assert.equal(runnerKey, '')
    assert.throws(() => loadConfig(withoutKey), /ALCOVE_RUNNER_KEY is missing/)
  })

  test('the settings name the gate of a runner’s sandboxes; a wrong address or URL of the gate is an error', () => {
    const gate = { ALCOVE_GATE_ID: 'second', ALCOVE_GATE_ADDRESS: '10.0.0.7:4604' }
    assert.equal(loadConfig(told).gate, undefined)
    assert.deepEqual(loadConfig({ ...told, ...gate, ALCOVE_GATE_PUBLIC_URL: 'https://two.example.com/' }).gate, {
      ...{ id: 'second', address: '10.0.0.7:4604', publicUrl: 'https://two.example.com' },
    })
    assert.throws(() => loadConfig({ ...told, ALCOVE_GATE_ADDRESS: 'here' }), /ALCOVE_GATE_ADDRESS is not usable/)
    for (const wrong of ['two.example.com', 'ftp://two.example.com']) {
      assert.throws(() => loadConfig({ ...told, ALCOVE_GATE_PUBLIC_URL: wrong }), /ALCOVE_GATE_PUBLIC_URL is not/)
    }
  })

  test('a wrong setting of the archive store is reported together with all other wrong settings', () => {
    assert.throws(
      () => loadConfig({ ...told, ALCOVE_RUNNER_KEY: '', ALCOVE_ARCHIVE_STORE: 's3://box' }),
      /^Error: ALCOVE_RUNNER_KEY is missing.*\nALCOVE_ARCHIVE_STORE is S3, so ALCOVE_ARCHIVE_S3_KEY/s,
    )
  })

  test('the data directory determines the instance’s name, and by default contains the runner’s socket', () => {
    const data = mkdtempSync(join(tmpdir(), 'alcove-data-'))
    try {
      const config = loadConfig({
        ALCOVE_RUNNER_DIR: join(data, 'runner'),
        ALCOVE_CONTROL_URL: 'http://127.0.0.1:3000',
        ALCOVE_RUNNER_KEY: 'k',
        ALCOVE_RUNNER_SOCKET_GID: '7',
      })
      assert.deepEqual(
        [config.instance, config.socket, config.socketGid, config.cacheDirectory],
        [instanceOf(data), join(data, 'run/runner.sock'), 7, '/var/cache/alcove'],
      )
    } finally {
      rmSync(data, { recursive: true, force: true })
    }
  })
})
