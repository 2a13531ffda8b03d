import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { removeTree } from './remove-tree.ts'

suite('removing a directory tree (`removeTree`)', () => {
  test('`removeTree` removes a directory with paths longer than PATH_MAX, and follows no symbolic link', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'alcove-tree-'))
    const tree = join(directory, '-tree')
    const kept = join(directory, 'kept')
    try {
      const halfPath = Array<string>(15).fill('d'.repeat(200)).join('/')
      for (const top of [tree, `${tree}2`]) mkdirSync(join(top, halfPath), { recursive: true })
      renameSync(`${tree}2`, join(tree, halfPath, 'rest'))
      mkdirSync(kept)
      writeFileSync(join(kept, 'file'), '')
      symlinkSync(kept, join(tree, 'link'))
      await removeTree(tree)
      await removeTree(tree)
      assert.deepEqual([readdirSync(directory), readdirSync(kept)], [['kept'], ['file']])
    } finally {
      await removeTree(directory)
    }
  })
})
