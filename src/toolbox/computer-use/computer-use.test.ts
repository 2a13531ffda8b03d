// Tests computer use with a fake python3, which stores its standard input and runs a test's shell script. Real desktops:
// test/sandboxes/computer-use.test.ts.
import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { until } from '../agent/testing/native-agent.ts'
import { searchPath } from '../testing/assignment.ts'
import { startToolbox, type Toolbox } from '../testing/toolbox.ts'
import { mostCalls } from './ask.ts'

suite('calls for the desktop of a sandbox (computer use)', () => {
  let box: Toolbox
  let programs: string
  before(async () => {
    box = await startToolbox()
    programs = join(box.directory, 'programs')
    mkdirSync(programs)
    box.assignment.env['PATH'] = `${programs}:${searchPath}`
  })
  after(async () => {
    await box?.[Symbol.asyncDispose]()
  })

  const asked = () => JSON.parse(readFileSync(join(box.directory, 'asked'), 'utf8')) as { call: string; given: object }

  /** Makes the fake python3 store its standard input and then run this shell script. */
  const behave = (script: string) => {
    rmSync(join(box.directory, 'asked'), { force: true })
    writeFileSync(join(programs, 'python3'), `#!/bin/sh\ncat > '${box.directory}/asked'\n${script}\n`)
    chmodSync(join(programs, 'python3'), 0o755)
  }
  const answering = (said: object) => {
    writeFileSync(join(box.directory, 'answer'), JSON.stringify(said))
    behave(`cat '${box.directory}/answer'`)
  }

  /** Makes a call that the sandbox answers with `result`. Returns the answer, and the request that the sandbox received. */
  const call = async (method: 'get' | 'post' | 'delete', path: string, body: unknown, result: unknown) => {
    answering({ result })
    const { status, body: answer } =
      method === 'post' ? await box.post(`/computeruse/${path}`, body) : await box[method](`/computeruse/${path}`)
    assert.ok(status < 300, `${path}: ${status} ${JSON.stringify(answer)}`)
    const { call: name, given } = asked()
    return { answer, asked: [name, given] }
  }

  const runs = (running: boolean, pid?: number) => ({ running, priority: 1, autoRestart: true, ...(pid && { pid }) })

  test('POST /computeruse/start and POST /computeruse/stop answer 200 with the status of each desktop program', async () => {
    const status = { xvfb: runs(true, 7) }
    const started = await call('post', 'start', undefined, status)
    assert.deepEqual([started.answer.status, started.asked], [status, ['start', {}]])
    const stopped = await call('post', 'stop', undefined, { xvfb: runs(false) })
    assert.deepEqual([stopped.answer.status, stopped.asked], [{ xvfb: runs(false) }, ['stop', {}]])
  })

  test('GET /computeruse/status and GET /computeruse/process-status say if the desktop is active, partial or inactive', async () => {
    for (const path of ['status', 'process-status']) {
      for (const [programsThere, status] of [
        [{ a: runs(true), b: runs(true) }, 'active'],
        [{ a: runs(true), b: runs(false) }, 'partial'],
        [{ a: runs(false) }, 'inactive'],
        [{}, 'inactive'],
      ] as const) {
        assert.deepEqual((await call('get', path, undefined, programsThere)).answer, { status })
      }
    }
  })

  test('GET /computeruse/process/{processName}/status and POST /computeruse/process/{processName}/restart answer 200', async () => {
    const status = await call('get', 'process/novnc/status', undefined, true)
    assert.deepEqual(status.answer, { processName: 'novnc', running: true })
    assert.deepEqual(status.asked, ['process_status', { name: 'novnc' }])
    const restarted = await call('post', 'process/novnc/restart', undefined, null)
    assert.deepEqual([restarted.answer.processName, restarted.asked], ['novnc', ['restart', { name: 'novnc' }]])
  })

  test('GET /computeruse/process/{processName}/logs and GET /computeruse/process/{processName}/errors answer 200', async () => {
    for (const [kind, text] of [
      ['logs', 'one\n'],
      ['errors', '\u001b[31m'],
    ]) {
      const { answer, asked: was } = await call('get', `process/xvfb/${kind}`, undefined, text)
      assert.deepEqual([answer, was], [{ processName: 'xvfb', [kind!]: text }, [kind, { name: 'xvfb' }]])
    }
  })

  test('GET /computeruse/mouse/position, POST /computeruse/mouse/move, POST /computeruse/mouse/click answer 200', async () => {
    const point = { x: 3, y: 4 }
    assert.deepEqual((await call('get', 'mouse/position', undefined, point)).answer, point)
    const moved = await call('post', 'mouse/move', { x: 1, y: 2 }, point)
    assert.deepEqual([moved.answer, moved.asked], [point, ['move', { x: 1, y: 2 }]])
    const click = async (body: object) => (await call('post', 'mouse/click', { x: 1, y: 2, ...body }, point)).asked[1]
    assert.deepEqual(await click({}), { x: 1, y: 2, button: 1, times: 1 })
    assert.deepEqual(await click({ button: 'right', double: true }), { x: 1, y: 2, button: 3, times: 2 })
  })

  test('POST /computeruse/mouse/drag and POST /computeruse/mouse/scroll answer 200', async () => {
    const drag = { startX: 1, startY: 2, endX: 3, endY: 4 }
    const dragged = await call('post', 'mouse/drag', drag, { x: 3, y: 4 })
    assert.deepEqual(dragged.asked, ['drag', { start: [1, 2], end: [3, 4], button: 1 }])
    const scrolled = await call('post', 'mouse/scroll', { x: 1, y: 2, direction: 'down' }, true)
    assert.deepEqual(scrolled.answer, { success: true })
    assert.deepEqual(scrolled.asked, ['scroll', { x: 1, y: 2, button: 5, times: 1 }])
  })

  test('POST /computeruse/keyboard/key and POST /computeruse/keyboard/hotkey answer 200, and 400 for an unknown key', async () => {
    const pressed = await call('post', 'keyboard/key', { key: 'Enter', modifiers: ['ctrl'] }, null)
    assert.deepEqual([pressed.answer, pressed.asked], [{}, ['press', { keys: 'ctrl+Return' }]])
    const hotkey = await call('post', 'keyboard/hotkey', { keys: 'cmd+v' }, null)
    assert.deepEqual(hotkey.asked, ['press', { keys: 'super+v' }])
    assert.equal((await box.post('/computeruse/keyboard/hotkey', { keys: '--help' })).status, 400)
  })

  test('POST /computeruse/keyboard/type answers 200, and 400 for a text whose typing takes more than a minute', async () => {
    const type = async (body: object) => (await call('post', 'keyboard/type', body, null)).asked[1] as { delay: number }
    assert.equal((await type({ text: 'echo "a"\n' })).delay, 4)
    assert.equal((await type({ text: 'ü', delay: 100 })).delay, 100)
    const typed = await call('post', 'keyboard/type', { text: 'a\r\nb\r\tc' }, null)
    assert.equal((typed.asked[1] as { text: string }).text, 'a\nb\n\tc')
    for (const text of ['\0', '\u001b[A', '\ud800', '\u007f']) {
      assert.equal((await box.post('/computeruse/keyboard/type', { text })).status, 400, JSON.stringify(text))
    }
    const slow = await box.post('/computeruse/keyboard/type', { text: 'x'.repeat(61), delay: 1000 })
    assert.equal(slow.status, 400)
    assert.match(slow.body.message, /more than 60 s/)
  })

  const picture = { screenshot: 'iVBO', cursorPosition: { x: 1, y: 2 }, sizeBytes: 3 }
  const look = async (path: string) => {
    const { answer, asked: was } = await call('get', path, undefined, picture)
    assert.deepEqual(answer, picture)
    return was[1]
  }

  test('GET /computeruse/screenshot and GET /computeruse/screenshot/region answer 200 with a PNG', async () => {
    const png = { format: 'png', quality: 75, scale: 1 }
    assert.deepEqual(await look('screenshot'), { cursor: false, region: null, ...png })
    const region = await look('screenshot/region?x=1&y=2&width=3&height=4&showCursor=true')
    assert.deepEqual(region, { cursor: true, region: [1, 2, 3, 4], ...png })
  })

  test('a screenshot region from SDK 0.216.0, which sends its numbers in reverse order, is corrected', async () => {
    answering({ result: picture })
    const headers = { 'x-daytona-source': 'sdk-typescript', 'x-daytona-sdk-version': '0.216.0' }
    const query = '?x=4&y=3&width=2&height=0'
    assert.equal((await box.get(`/computeruse/screenshot/region${query}`, headers)).status, 200)
    assert.deepEqual((asked().given as { region: number[] }).region, [0, 2, 3, 4])
    const newer = { ...headers, 'x-daytona-sdk-version': '0.217.0' }
    assert.equal((await box.get(`/computeruse/screenshot/region${query}`, newer)).status, 400)
  })

  test('GET /computeruse/screenshot/compressed and GET /computeruse/screenshot/region/compressed answer 200', async () => {
    const smaller = await look('screenshot/compressed?format=jpg&quality=20&scale=0.5')
    assert.deepEqual(smaller, { cursor: false, region: null, format: 'jpeg', quality: 20, scale: 0.5 })
    const region = await look('screenshot/region/compressed?x=1&y=2&width=3&height=4&format=webp')
    assert.deepEqual(region, { cursor: false, region: [1, 2, 3, 4], format: 'webp', quality: 75, scale: 1 })
  })

  test('GET /computeruse/display/info and GET /computeruse/display/windows answer 200 with all displays or windows', async () => {
    const place = { x: 0, y: 0, width: 10, height: 20 }
    const displays = [{ id: 0, ...place, isActive: true }]
    assert.deepEqual((await call('get', 'display/info', undefined, displays)).answer, { displays })
    const windows = [{ id: 9, title: 'a\nb', ...place, isActive: false }]
    assert.deepEqual((await call('get', 'display/windows', undefined, windows)).answer, { windows })
  })

  const id = '0123456789abcdef0123456789abcdef'
  const recording = (more: object = {}) => ({
    ...{ id, fileName: 'a.mp4', filePath: join(box.directory, 'a.mp4'), status: 'recording' },
    ...{ startTime: '2026-01-01T00:00:00.000Z', ...more },
  })

  test('POST /computeruse/recordings/start answers 200 with or without a label, and POST /computeruse/recordings/stop 200', async () => {
    for (const [body, label] of [
      [{ label: 'one' }, 'one'],
      [{}, null],
      [undefined, null],
    ] as const) {
      const { answer, asked: was } = await call('post', 'recordings/start', body, recording())
      assert.deepEqual([answer, was], [recording(), ['start_recording', { label }]])
    }
    const ended = recording({ status: 'completed', endTime: '2026-01-01T00:00:01Z', durationSeconds: 1, sizeBytes: 5 })
    const stopped = await call('post', 'recordings/stop', { id }, ended)
    assert.deepEqual([stopped.answer, stopped.asked], [ended, ['stop_recording', { id }]])
  })

  test('GET /computeruse/recordings, GET /computeruse/recordings/{id}, DELETE /computeruse/recordings/{id} answer 200', async () => {
    assert.deepEqual((await call('get', 'recordings', undefined, [])).answer, { recordings: [] })
    const one = await call('get', `recordings/${id}`, undefined, recording())
    assert.deepEqual([one.answer, one.asked], [recording(), ['get_recording', { id }]])
    assert.deepEqual((await call('delete', `recordings/${id}`, undefined, null)).asked, ['delete_recording', { id }])
  })

  test('computer use calls answer 404 for an invalid process name or recording id, and run no program', async () => {
    behave('exit 1')
    for (const name of ['xfce4', '..%2Fx', 'constructor', `${id}0`, id.toUpperCase()]) {
      for (const path of [`process/${name}/status`, `process/${name}/logs`, `recordings/${name}`]) {
        assert.equal((await box.get(`/computeruse/${path}`)).status, 404, path)
      }
      assert.equal((await box.post(`/computeruse/process/${name}/restart`, {})).status, 404)
      assert.equal((await box.post('/computeruse/recordings/stop', { id: decodeURIComponent(name) })).status, 404)
      assert.equal((await box.delete(`/computeruse/recordings/${name}`)).status, 404)
    }
    assert.ok(!existsSync(join(box.directory, 'asked')))
  })

  test('GET /computeruse/recordings/{id}/download answers 200 with the file’s bytes, and 404 if the file is gone', async () => {
    answering({ result: recording() })
    const url = box.url(`/toolbox/box-1/computeruse/recordings/${id}/download`)
    assert.equal((await fetch(url)).status, 404)
    writeFileSync(join(box.directory, 'a.mp4'), 'video')
    const reply = await fetch(url)
    assert.deepEqual(
      [reply.status, await reply.text(), reply.headers.get('content-disposition')],
      [200, 'video', 'attachment; filename="a.mp4"'],
    )
  })

  const node = { id: ':1.2:/a', name: 'Send', role: 'button', description: '', states: ['focused'], actions: ['click'] }

  test('GET /computeruse/a11y/tree and POST /computeruse/a11y/find answer 200, and 400 for `scope=pid` without `pid`', async () => {
    const rows = [
      { ...node, parent: null },
      { ...node, id: ':1.2:/b', parent: 0 },
    ]
    const tree = await call('get', 'a11y/tree?scope=pid&pid=4&maxDepth=2', undefined, { rows, truncated: false })
    assert.deepEqual(tree.answer, { root: { ...node, children: [{ ...node, id: ':1.2:/b' }] }, truncated: false })
    assert.deepEqual(tree.asked, ['tree', { scope: 'pid', pid: 4, depth: 2 }])
    const found = { matches: [node], truncated: true }
    const find = await call('post', 'a11y/find', { role: 'button' }, found)
    const all = { scope: 'focused', pid: null, role: 'button', name: null, how: 'substring', states: [], limit: 50 }
    assert.deepEqual([find.answer, find.asked], [found, ['find', all]])
    assert.equal((await box.get('/computeruse/a11y/tree?scope=pid')).status, 400)
  })

  test('POST /computeruse/a11y/node/focus, POST /computeruse/a11y/node/invoke, POST /computeruse/a11y/node/value answer 200', async () => {
    const of = { id: node.id }
    assert.deepEqual((await call('post', 'a11y/node/focus', of, null)).asked, ['focus', of])
    assert.deepEqual((await call('post', 'a11y/node/invoke', of, null)).asked, ['invoke', { ...of, action: null }])
    const set = await call('post', 'a11y/node/value', { ...of, value: 'x' }, null)
    assert.deepEqual(set.asked, ['set_value', { ...of, value: 'x' }])
  })

  test('computer use calls answer 400 for values out of range, of wrong type or too long, and run no program', async () => {
    behave('exit 1')
    for (const [path, body] of [
      ['mouse/move', { x: -1, y: 0 }],
      ['mouse/move', { x: 1.5, y: 0 }],
      ['mouse/move', { x: '1', y: 0 }],
      ['mouse/move', { x: 1 }],
      ['mouse/click', { x: 1, y: 1, button: 'fourth' }],
      ['mouse/drag', { startX: 1, startY: 1, endX: 1, endY: 40_000 }],
      ['mouse/scroll', { x: 1, y: 1, direction: 'left' }],
      ['mouse/scroll', { x: 1, y: 1, direction: 'up', amount: 101 }],
      ['keyboard/type', { text: 'x'.repeat(10_001) }],
      ['keyboard/type', { text: 'x', delay: -1 }],
      ['keyboard/key', { key: '' }],
      ['keyboard/key', { key: 'a', modifiers: Array(9).fill('ctrl') }],
      ['recordings/start', { label: 'x'.repeat(201) }],
      ['recordings/stop', {}],
      ['a11y/find', { limit: 501 }],
      ['a11y/find', { nameMatch: 'glob' }],
      ['a11y/node/focus', { id: '' }],
      ['a11y/node/value', { id: 'x' }],
    ] as const) {
      assert.equal((await box.post(`/computeruse/${path}`, body)).status, 400, `${path} ${JSON.stringify(body)}`)
    }
    for (const path of [
      'screenshot/region?x=0&y=0&width=0&height=1',
      'screenshot/region?x=0&y=0',
      'screenshot/compressed?quality=0',
      'screenshot/compressed?scale=2',
      'screenshot/compressed?format=bmp',
      'a11y/tree?maxDepth=-2',
      'a11y/tree?scope=mine',
    ]) {
      assert.equal((await box.get(`/computeruse/${path}`)).status, 400, path)
    }
    assert.ok(!existsSync(join(box.directory, 'asked')))
  })

  const position = () => box.get('/computeruse/mouse/position')

  test('computer use calls answer 422 and name the missing program and a snapshot that contains it', async () => {
    answering({ refusal: 'missing', message: 'xdotool' })
    const { status, body } = await position()
    assert.equal(status, 422)
    assert.match(body.message, /no xdotool\. The snapshot "desktop" has all/)
  })

  test('computer use calls answer 422 and name python3 if the image does not have it', async () => {
    const path = box.assignment.env['PATH']!
    box.assignment.env['PATH'] = join(box.directory, 'nothing')
    try {
      const { status, body } = await position()
      assert.equal(status, 422)
      assert.match(body.message, /no python3\. The snapshot "desktop"/)
    } finally {
      box.assignment.env['PATH'] = path
    }
  })

  test('computer use calls answer 422 if the desktop’s program fails or its answer is too long', async () => {
    behave('echo "first\nOSError: No space left" >&2; exit 1')
    const died = await position()
    assert.deepEqual([died.status, /OSError: No space left\./.test(died.body.message)], [422, true])
    behave('kill -9 $$')
    assert.equal((await position()).status, 422)
    behave('head -c 20000000 /dev/zero')
    assert.match((await position()).body.message, /too long/)
  })

  test('while a sandbox has 8 unanswered computer use calls, more calls get 429 until a caller disconnects', async () => {
    const count = join(box.directory, 'count')
    behave(`echo x >> '${count}'; exec sleep 600`)
    const calls = Array.from({ length: mostCalls }, () => box.call('/computeruse/recordings/start', {}))
    for (const each of calls) each.on('error', () => undefined)
    await until(() => existsSync(count) && readFileSync(count, 'utf8').length === 2 * mostCalls, 'all calls run')
    assert.equal((await position()).status, 429)
    for (const each of calls) each.destroy()
    answering({ result: { x: 1, y: 1 } })
    await until(async () => (await position()).status === 200, 'there is room')
  })
})
