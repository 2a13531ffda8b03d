import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { after, suite, test } from 'node:test'
import { Complaint } from './complaint.ts'
import { checkCodeIsReadable } from './readable-code.ts'

const code = resolve(import.meta.dirname, '../..')

suite('the check that programs can read the code', () => {
  const clone = mkdtempSync(join(tmpdir(), 'alcove-code-'))
  after(() => rmSync(clone, { recursive: true, force: true }))
  const node = `node_modules/node-linux-${process.arch}/bin/node`
  const files = ['package.json', 'bin/control.ts', 'src/control/main.ts', 'node_modules/pino/package.json', node]
  for (const file of files) {
    mkdirSync(join(clone, dirname(file)), { recursive: true })
    writeFileSync(join(clone, file), '')
  }

  test('if only the owner of a code file can read it, `up` refuses to start and names a command that helps', () => {
    execFileSync('chmod', ['-R', 'go-rwx', clone])
    let command = ''
    assert.throws(
      () => checkCodeIsReadable(clone),
      (error) => {
        command = (error as Error).message.split(': ').at(-1) ?? ''
        return error instanceof Complaint && /^only its owner may read \//.test(error.message)
      },
    )
    assert.equal(command, `chmod -R go+rX '${clone}'`)
    execFileSync('sh', ['-c', command])
    checkCodeIsReadable(clone, join(clone, node))
  })

  test('`checkCodeIsReadable` checks all directories that an update of Alcove may have changed', () => {
    for (const name of ['bin', 'src/control/main.ts', 'node_modules', 'node_modules/pino', dirname(node)]) {
      const path = join(clone, name)
      chmodSync(path, 0o700)
      assert.throws(() => checkCodeIsReadable(clone, join(clone, node)), new RegExp(`only its owner may read ${path},`))
      chmodSync(path, 0o755)
    }
    symlinkSync('nowhere', join(clone, 'src/.#main.ts'))
    checkCodeIsReadable(clone, join(clone, node))
    checkCodeIsReadable(code)
  })

  test('`./alcove` runs the code under umask 022, whatever root’s umask is', () => {
    copyFileSync(join(code, 'alcove'), join(clone, 'alcove'))
    for (const name of ['package-lock.json', 'node_modules/.alcove-lock.json'])
      writeFileSync(join(clone, name), 'locked')
    writeFileSync(join(clone, node), '#!/bin/sh\numask\n')
    chmodSync(join(clone, node), 0o755)
    assert.equal(execFileSync('sh', ['-c', `umask 077; '${clone}/alcove'`], { encoding: 'utf8' }), '0022\n')
  })
})
