import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { overlayOptions } from './options.ts'

suite('the mount options of a sandbox’s overlay', () => {
  test('`overlayOptions` lists the layers of an overlay from the uppermost to the lowest', () => {
    assert.equal(
      overlayOptions(['/b', '/a'], '/u', '/w'),
      'lowerdir=/b:/a,upperdir=/u,workdir=/w,redirect_dir=on,metacopy=off',
    )
  })

  test('`overlayOptions` escapes paths, so that a path cannot add a layer or an option', () => {
    assert.match(overlayOptions(['/a:b,c\\d'], '/u', '/w'), /^lowerdir=\/a\\:b\\,c\\\\d,upperdir=\/u,workdir=\/w,/)
  })
})
