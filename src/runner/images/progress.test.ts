import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Progress } from '#src/wire/runner-link.ts'
import { createProgressReader } from './progress.ts'

test('the progress of a default image build follows its phases and packages, and never decreases', () => {
  const read = createProgressReader()
  const lines = [
    'I: automatically chosen mode: root',
    'I: running apt-get update...',
    'Get:1 http://deb.debian.org/debian bookworm InRelease [151 kB]',
    'I: downloading packages with apt...',
    '0 upgraded, 2 newly installed, 0 to remove and 0 not upgraded.',
    'Get:1 http://deb.debian.org/debian bookworm/main amd64 a',
    'Get:2 http://deb.debian.org/debian bookworm/main amd64 b',
    'I: extracting archives...',
    'I: installing essential packages...',
    'Unpacking a (1) ...',
    'Setting up a (1) ...',
    'I: installing remaining packages inside the chroot...',
    '0 upgraded, 1 newly installed, 0 to remove and 0 not upgraded.',
    'Get:1 http://deb.debian.org/debian bookworm/main amd64 c',
    'Unpacking c (1) ...',
    'Setting up c (1) ...',
    'Setting up c again, which must not pass the end of the phase',
    'I: cleaning package lists and apt cache...',
    'I: creating tarball...',
  ]
  const seen = lines.map(read).filter((progress) => progress !== undefined) as Progress[]
  const percents = seen.map(({ percent }) => percent)
  assert.deepEqual(
    percents,
    percents.toSorted((a, b) => a - b),
  )
  assert.deepEqual(percents, [1, 4, 9, 14, 14, 20, 25, 30, 40, 55, 70, 85, 85, 85, 88])
  assert.equal(seen.at(-1)?.step, 'packing')
})
