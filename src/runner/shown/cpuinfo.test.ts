import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderCpuinfo } from './cpuinfo.ts'

test('/proc/cpuinfo in a sandbox omits processors that the sandbox may not use, and nothing else', () => {
  const ofHost = 'processor\t: 0\nmodel name\t: X\n\nprocessor\t: 1\nmodel name\t: Y\n\nHardware\t: Z\n\n'
  assert.equal(renderCpuinfo(ofHost, [1]), 'processor\t: 1\nmodel name\t: Y\n\nHardware\t: Z\n\n')
})
