import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { type Sides, startSides } from '../testing/simulated.ts'
import { browser, openedBy, previewHost, visit } from '../testing/visiting.ts'

const cookie = 'daytona-sandbox-auth-box-id=c'

const offeredTokens = async (sides: Sides, call: Parameters<typeof visit>[1] = {}): Promise<string[]> => {
  await visit(sides, { ...call, headers: { cookie, ...call.headers } })
  return sides.asked.at(-1)!.credentials.map((credential) => ('token' in credential ? credential.token : ''))
}

suite('a preview cookie', () => {
  test('a preview cookie is accepted if the visitor follows a link, and from the sandbox’s own pages', async () => {
    await using sides = await startSides()
    for (const headers of [
      {},
      { ...browser, 'sec-fetch-site': 'none' },
      { ...browser, 'sec-fetch-site': 'same-site' },
      { ...browser, 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' },
      { 'sec-fetch-site': 'same-origin', origin: 'null' },
      { origin: `http://${previewHost}` },
      { origin: 'https://3000-box-id.proxy.test' },
      { origin: 'http://8080-box-id.proxy.test:4601', 'sec-fetch-site': 'same-site' },
      { referer: 'http://8080-box-id.proxy.test:4601/', 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' },
    ] as Record<string, string>[]) {
      assert.deepEqual(await offeredTokens(sides, { headers }), ['c'], JSON.stringify(headers))
    }
  })

  test('a preview cookie is not accepted from another sandbox’s page, although browsers send it', async () => {
    await using sides = await startSides()
    for (const headers of [
      { origin: 'http://3000-other.proxy.test:4601' },
      { origin: 'http://3000-box.other.test' },
      { origin: 'null' },
      { origin: 'null', 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' },
      { referer: 'http://3000-other.proxy.test:4601/', 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' },
    ] as Record<string, string>[]) {
      assert.deepEqual(await offeredTokens(sides, { headers }), [], JSON.stringify(headers))
    }
    const form = { ...browser, origin: 'http://3000-other.proxy.test:4601', 'sec-fetch-site': 'same-site' }
    assert.deepEqual(await offeredTokens(sides, { method: 'POST', headers: form }), [])
  })

  test('the gate tries the preview cookie of the called sandbox first, even if a page has set many others', async () => {
    await using sides = await startSides()
    const junk = Array.from({ length: 20 }, (_, at) => `daytona-sandbox-auth-${at}=junk`).join('; ')
    const tokens = await offeredTokens(sides, { headers: { cookie: `${junk}; ${cookie}` } })
    assert.deepEqual(tokens, ['c', 'junk', 'junk', 'junk'])
  })

  test('while a call runs, the gate rechecks with control only the preview cookie that allowed the call', async () => {
    await using sides = await startSides({ presenceMs: 5 })
    const isAskedAgain = Promise.withResolvers<void>()
    openedBy(sides, 'preview-cookie')
    const { answer } = sides.control
    sides.control.answer = (question) => {
      if (question.wasLetIn) isAskedAgain.resolve()
      return answer(question)
    }
    sides.inside.call = (_request, response) => {
      isAskedAgain.promise.then(() => response.end())
    }
    await visit(sides, { headers: { cookie, authorization: 'Bearer dtn_revoked' } })
    assert.deepEqual(sides.asked.find(({ wasLetIn }) => wasLetIn)?.credentials, [
      { kind: 'preview-cookie', token: 'c' },
    ])
  })
})
