import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startSides } from '../testing/simulated.ts'
import { visit } from '../testing/visiting.ts'

suite('previews of a hostile server', () => {
  test('a preview’s long answer keeps its length even if its header Connection names Content-Length', async () => {
    await using sides = await startSides()
    const promised = 300_000
    const body = '5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil'.padEnd(promised, 'x')
    sides.insideSocket = (socket) => {
      socket.once('data', () =>
        socket.end(
          `HTTP/1.1 200 OK\r\nConnection: close, Content-Length\r\nContent-Length: ${promised}\r\n\r\n${body}`,
        ),
      )
    }
    const { headers, text } = await visit(sides)
    assert.deepEqual([headers['content-length'], headers['transfer-encoding']], [String(promised), undefined])
    assert.ok(text === body, `${text.length} bytes: ${text.slice(0, 40)}`)
  })
})
