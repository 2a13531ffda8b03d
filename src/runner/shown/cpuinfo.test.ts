import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderCpuinfo } from './cpuinfo.ts'

test('/proc/cpuinfo in a sandbox omits other processors of the host, and nothing else', () => {
  const ofHost = 'processor\t: 0\nmodel name\t: X\n\nprocessor\t: 1\nmodel name\t: Y\n\nHardware\t: Z\n\n'
  assert.equal(renderCpuinfo(ofHost, [1]), 'processor\t: 1\nmodel name\t: Y\n\nHardware\t: Z\n\n')
})
