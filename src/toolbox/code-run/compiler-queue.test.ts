import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Deadline } from '#src/toolbox/running/deadline.ts'
import type { Compiler } from '../compiler.ts'
import { compilerQueue, transpile } from './typescript.ts'

const nobodyHangsUp = new AbortController().signal

const start = (atOnce: number) => {
  const turns = compilerQueue(atOnce, { each: 3, all: 5, sure: 1 })
  const order: string[] = []
  /** The running compilations: each with its owner and the function that ends it. */
  const having: { owner: string; end: () => void }[] = []
  const take = async (owner: string, signal = nobodyHangsUp) => {
    const turn = await turns.take(owner, signal)
    order.push(owner)
    having.push({ owner, end: () => turn[Symbol.dispose]() })
  }
  const endOne = async () => {
    having.shift()?.end()
    await new Promise(setImmediate)
  }
  return { take, endOne, order }
}

suite('the queue of TypeScript compilations', () => {
  test('the organization with the fewest running compilations is served next, even if others queue many more', async () => {
    const { take, endOne, order } = start(2)
    await Promise.all([take('a'), take('a')])
    const waiting = [take('a'), take('a'), take('b'), take('c')]
    for (let turn = 0; turn < 4; turn++) await endOne()
    await Promise.all(waiting)
    assert.deepEqual(order, ['a', 'a', 'b', 'a', 'c', 'a'])
  })

  test('a TypeScript compilation is refused with 429 if too many wait; one per organization may always wait', async () => {
    const { take } = start(1)
    await take('a')
    for (let call = 0; call < 3; call++) take('a')
    await assert.rejects(take('a'), { status: 429 })
    for (let call = 0; call < 2; call++) take('b')
    await assert.rejects(take('b'), { status: 429 })
    take('c')
    await assert.rejects(take('c'), { status: 429 })
  })

  test('a caller that stops waiting frees its place in the compiler queue, and its code is not compiled', async () => {
    const { take, endOne, order } = start(1)
    await take('a')
    const calls = new AbortController()
    const givenUp = Array.from({ length: 3 }, () => assert.rejects(take('a', calls.signal), { message: 'hung up' }))
    calls.abort(new Error('hung up'))
    await Promise.all(givenUp)
    const others = [take('a'), take('a'), take('a')]
    for (let turn = 0; turn < 3; turn++) await endOne()
    await Promise.all(others)
    assert.equal(order.length, 4)
  })

  test('TypeScript code of more than 1 MiB is refused with 413, and code of 1 MiB is compiled', async () => {
    const sizes: number[] = []
    const compile = async (source: string) => {
      sizes.push(source.length)
      return { code: 0, javascript: '', errors: '' }
    }
    const compiler: Compiler = { compile, typeRemover: async () => '' }
    const size = 1024 ** 2
    const deadline = { signal: nobodyHangsUp } as Deadline
    await assert.rejects(transpile(compiler, 'a', 'x'.repeat(size + 1), deadline), { status: 413 })
    assert.deepEqual(await transpile(compiler, 'a', 'x'.repeat(size), deadline), {
      javascript: '',
      isModule: false,
    })
    assert.deepEqual(sizes, [size])
  })
})
