import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, before, beforeEach, suite, test } from 'node:test'
import { sudoLayerFor, sudoPolicyOf } from './sudo.ts'

suite('the overlay layer that adds sudo', () => {
  let place: string
  let roots: { disk: string; image: string }
  before(() => {
    place = mkdtempSync(join(tmpdir(), 'alcove-sudo-'))
  })
  after(() => rmSync(place, { recursive: true, force: true }))
  beforeEach(() => {
    const own = mkdtempSync(join(place, 'x'))
    roots = { disk: join(own, 'disk'), image: join(own, 'image') }
    for (const root of Object.values(roots)) mkdirSync(root)
  })
  const chosen = () => {
    const layer = sudoLayerFor('/layers', [roots.disk, roots.image])
    return layer && basename(layer)
  }

  test('links to sudo are made only in directories that the sandbox already has', () => {
    assert.equal(chosen(), undefined)
    mkdirSync(join(roots.image, 'bin'))
    assert.equal(chosen(), 'bin')
    mkdirSync(join(roots.image, 'usr/bin'), { recursive: true })
    assert.equal(chosen(), 'usr')
    mkdirSync(join(roots.disk, 'usr/local/bin'), { recursive: true })
    assert.equal(chosen(), 'local')
  })

  test('if a sandbox has replaced a directory such as /usr by a file, the sandbox gets no link to sudo there', () => {
    mkdirSync(join(roots.image, 'usr/bin'), { recursive: true })
    writeFileSync(join(roots.disk, 'usr'), '')
    assert.equal(chosen(), undefined)
  })

  test('if a directory such as /usr is a symbolic link in the image, the sandbox gets no link to sudo there', () => {
    symlinkSync('/usr', join(roots.image, 'usr'))
    symlinkSync('/bin', join(roots.image, 'bin'))
    assert.equal(chosen(), undefined)
    mkdirSync(join(roots.disk, 'usr'))
    assert.equal(chosen(), undefined)
  })
})

suite('who may use sudo in a sandbox', () => {
  test('the default user of a sandbox may use sudo; in the sandbox of a build, every user may use sudo', () => {
    assert.equal(sudoPolicyOf({ user: 'app:staff' }, '/bin').user, 'app')
    assert.equal(sudoPolicyOf({ user: 'root', isBuild: true }, '/bin').user, '*')
  })

  test('sudo finds programs in the absolute directories of the sandbox’s PATH, then in system directories', () => {
    assert.equal(
      sudoPolicyOf({ user: 'app' }, '/opt/go/bin:bin::/usr/bin:.').path,
      '/opt/go/bin:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin',
    )
  })
})
