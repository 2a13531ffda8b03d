import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderFindings } from './render.ts'

test('`alcove doctor` prints its findings as a table with aligned columns, and then a verdict', () => {
  const text = renderFindings([
    { name: 'kernel', status: 'ok', found: '6.18' },
    {
      name: 'disk limits',
      status: 'warn',
      found: 'no btrfs',
      costs: 'one can fill the disk',
      remedy: 'apt-get install btrfs-progs',
    },
  ])
  assert.equal(
    text,
    [
      'ok       kernel       6.18',
      'warn     disk limits  no btrfs',
      '                      costs: one can fill the disk',
      '                      remedy: apt-get install btrfs-progs',
      '',
      'This host can run sandboxes.',
      '',
    ].join('\n'),
  )
})

test('the verdict of `alcove doctor` names what the host lacks', () => {
  const text = renderFindings([{ name: 'nftables', status: 'missing', found: 'not installed' }])
  assert.match(text, /^MISSING {2}nftables {2}not installed\n\nThis host cannot run sandboxes yet: nftables\.\n$/)
})
