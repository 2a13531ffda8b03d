import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { countersAlone } from '../rate-limits/testing/alone.ts'
import { allowed, createSignInAttempts, TooManyAttempts } from './sign-in-attempts.ts'

type From = { address: string; name?: string; browser?: string }

const startAttempts = () => {
  const attempts = createSignInAttempts(countersAlone())
  const fail = async ({ address, name = 'ada@example.com', browser }: From): Promise<boolean> => {
    try {
      await attempts({ address, name, browser })
      return true
    } catch (error) {
      assert.ok(error instanceof TooManyAttempts)
      assert.ok(error.retryAfterSeconds >= 1)
      return false
    }
  }
  const failTimes = async (times: number, from: (n: number) => From) => {
    let letThrough = 0
    for (let n = 0; n < times; n += 1) if (await fail(from(n))) letThrough += 1
    return letThrough
  }
  return { attempts, fail, failTimes }
}

suite('`createSignInAttempts`', () => {
  test('an IP address may try 20 wrong passwords, at most 10 of them for one account', async () => {
    const { failTimes, fail } = startAttempts()
    assert.equal(await failTimes(15, () => ({ address: '192.0.2.1' })), 10)
    assert.equal(await failTimes(15, (n) => ({ address: '192.0.2.2', name: `${n % 5}@example.com` })), 15)
    assert.equal(await failTimes(15, (n) => ({ address: '192.0.2.2', name: `${n}@example.org` })), 5)
    assert.equal(await fail({ address: '192.0.2.3' }), true, 'another source has its own')
  })

  test('an IP address may always try three passwords for an account, however often other IP addresses failed', async () => {
    const { failTimes, fail } = startAttempts()
    await failTimes(400, (n) => ({ address: `198.51.100.${n % 200}` }))
    assert.equal(await failTimes(5, () => ({ address: '192.0.2.1' })), allowed.sourceAndAttackedName)
    assert.equal(await fail({ address: '192.0.2.1', name: 'bob@example.com' }), true)
  })

  test('an IPv6 /48 network may try 100 wrong passwords in total; refused tries are not counted', async () => {
    const { failTimes, fail } = startAttempts()
    const name = (n: number) => `${n}@example.com`
    assert.equal(await failTimes(200, (n) => ({ address: '2001:db8:1:1::1', name: name(n) })), 20)
    assert.equal(await failTimes(200, (n) => ({ address: `2001:db8:1:${(n + 2).toString(16)}::1`, name: name(n) })), 80)
    assert.equal(await fail({ address: '2001:db8:2:1::1' }), true)
  })

  test('a known browser has its own allowance of wrong passwords, then uses the allowance of its IP address', async () => {
    const { failTimes } = startAttempts()
    const address = '192.0.2.1'
    await failTimes(40, (n) => ({ address, name: `${n}@example.com` }))
    assert.equal(await failTimes(60, () => ({ address, browser: 'b' })), allowed.browser)
    assert.equal(await failTimes(1, () => ({ address: '192.0.2.2', browser: 'b' })), 1)
  })

  test('wrong passwords are forgotten after an hour for a known browser, after 15 minutes for an IP address', async ({
    mock,
  }) => {
    mock.timers.enable({ apis: ['Date', 'setTimeout'] })
    const minutes = (count: number) => mock.timers.tick(count * 60_000)
    const { failTimes } = startAttempts()
    const from = { address: '192.0.2.1', browser: 'b' }
    await failTimes(allowed.browser + 100, () => from)
    const source = (n: number) => ({ address: '192.0.2.2', name: `${n}@example.com` })
    assert.equal(await failTimes(30, source), 20)
    minutes(14)
    assert.equal(await failTimes(1, source), 0)
    minutes(16)
    assert.equal(await failTimes(30, source), 20)
    minutes(29)
    await failTimes(30, source)
    assert.equal(await failTimes(1, () => ({ ...from, address: '192.0.2.2' })), 0, 'still counted, in its 59th minute')
    minutes(2)
    assert.equal(await failTimes(allowed.browser, () => from), allowed.browser)
  })

  test('a correct password is not counted as a try', async () => {
    const { attempts, failTimes } = startAttempts()
    const from = { address: '192.0.2.1', name: 'ada@example.com', browser: undefined }
    for (let n = 0; n < 100; n += 1) await (await attempts(from))()
    assert.equal(await failTimes(20, () => from as unknown as From), 10)
  })
})
