import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { nodePackages } from './node-packages.ts'
import { defaultRecipe, keepPathStep, type Recipe, recipeHash, uv, uvStep } from './recipe.ts'

const sources = { suite: 'bookworm', lines: ['deb http://mirror.example/debian bookworm main'] }
const recipe = defaultRecipe(sources)

test('the hash of the default image’s recipe changes with each package, version, step, mirror and user', () => {
  const [first, ...rest] = nodePackages()
  assert.ok(first !== undefined)
  const others: Partial<Recipe>[] = [
    { packages: recipe.packages.slice(1) },
    { nodePackages: [{ ...first, version: '0.0.1' }, ...rest] },
    { nodePackages: [{ ...first, integrity: 'sha512-x' }, ...rest] },
    { steps: recipe.steps.map((step) => (step === uvStep(uv) ? uvStep({ ...uv, version: '0.0.1' }) : step)) },
    { steps: recipe.steps.map((step) => (step === uvStep(uv) ? uvStep({ ...uv, sha256: ['0'] }) : step)) },
    { sources: { ...sources, suite: 'trixie' } },
    { description: { ...recipe.description, user: 'somebody' } },
  ]
  const hashes = [recipe, ...others.map((other) => ({ ...recipe, ...other }))].map(recipeHash)
  assert.equal(new Set(hashes).size, others.length + 1)
  assert.equal(recipeHash(defaultRecipe(sources)), recipeHash(recipe))
})

test('the recipe of the default image contains no path of the machine that builds it', () => {
  assert.ok(!JSON.stringify(recipe).includes(import.meta.dirname.split('/').slice(0, 3).join('/')))
})

test('in the default image a caller’s PATH stays in front of the paths that `.profile` adds', () => {
  const root = mkdtempSync(join(tmpdir(), 'alcove-profile-'))
  try {
    const skeleton = join(root, 'etc/skel')
    for (const path of [skeleton, join(root, 'bin'), join(root, '.local/bin')]) mkdirSync(path, { recursive: true })
    copyFileSync('/etc/skel/.profile', join(skeleton, '.profile'))
    assert.ok(recipe.steps.includes(keepPathStep))
    execFileSync('sh', ['-ec', keepPathStep, 'step', root])
    const env = { HOME: root, PATH: '/own/bin:/usr/bin:/bin' }
    for (const shell of ['sh', 'bash']) {
      const path = execFileSync(shell, ['-c', `. ${skeleton}/.profile; echo "$PATH"`], { env, encoding: 'utf8' })
      assert.equal(path, `/own/bin:/usr/bin:/bin:${root}/bin\n`)
    }
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
})
