// Compares the list of columns in `columns.ts` with the database, and tries each entry on a real sandbox.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { create } from '#test/control/box.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'
import { type ColumnName, columns } from './columns.ts'

const names = Object.keys(columns).sort() as ColumnName[]

const namesWhere = (said: object) =>
  names.filter((name) => Object.entries(said).every(([key, value]) => (columns[name] as never)[key] === value))

type Stored = { name: ColumnName; type: string; isNullable: boolean }

/** Returns the columns of the table `sandboxes`, without those that the database computes. */
const storedColumns = (app: TestControl): Promise<Stored[]> =>
  app.database.sql<Stored[]>`
    select column_name as name, data_type as type, is_nullable = 'YES' as "isNullable"
    from information_schema.columns
    where table_schema = 'public' and table_name = 'sandboxes' and is_generated = 'NEVER'
    order by column_name collate "C"`

/** An SQL value for each type of column. No new sandbox has one of these values. */
const samples: Record<string, string> = {
  jsonb: `'{"dockerfile": "sample"}'`,
  text: `'sample'`,
  ARRAY: `'{sample}'`,
  boolean: 'true',
  integer: '7',
  bigint: '7',
  'double precision': '7',
  'timestamp with time zone': `'2030-01-01'`,
}

/** Sample values of JSON columns with lists. The entries of these lists need real fields, which a create and a start read. */
const lists: Partial<Record<ColumnName, string>> = {
  volumes: `'[{"volumeId": "sample", "mountPath": "/sample"}]'`,
  secrets: `'[{"variable": "SAMPLE", "secretId": "sample", "placeholder": "sample"}]'`,
}

const sampleOf = ({ name, type }: Stored) => lists[name] ?? samples[type]

const fill = async (app: TestControl, id: string, wanted: readonly Stored[]) => {
  const set = wanted.map((each) => `${each.name} = ${sampleOf(each) ?? assert.fail(`no sample of ${each.type}`)}`)
  await app.database.sql.unsafe(`update sandboxes set ${set.join(', ')} where id = $1`, [id])
}

const read = async (app: TestControl, id: string): Promise<Record<string, unknown>> =>
  (await app.database.sql`select * from sandboxes where id = ${id}`)[0]!

const waiting = { sandboxes: { createWaitSeconds: 20 } }

const isEmpty = (value: unknown) =>
  value === null || value === false || (typeof value === 'object' && Object.keys(value).length === 0)

suite('the columns of a sandbox', () => {
  test('`columns.ts` lists exactly the columns of the table `sandboxes`, and which of them are JSON', async () => {
    await using app = await startControl()
    const stored = await storedColumns(app)
    assert.deepEqual(
      stored.map(({ name }) => name),
      names,
    )
    assert.deepEqual(
      stored.filter(({ type }) => type === 'jsonb').map(({ name }) => name),
      namesWhere({ isJson: true }),
    )
  })

  test('when a runner has removed a sandbox, exactly the columns marked `shed` in `columns.ts` are emptied', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const { sql } = app.database
    const isShed = ({ name }: Stored) => columns[name].gone === 'shed'
    const stored = await storedColumns(app)
    const shed = stored.filter(isShed)
    assert.ok(shed.length > 0)
    // Fills all columns that must become empty, and some that must keep their values. `runner_id` needs the id of a runner.
    const chosen = stored.filter(
      ({ name, isNullable }) => isNullable && columns[name].fork === 'copied' && name !== 'runner_id',
    )
    for (const filled of [[...new Set([...shed, ...chosen])], ...shed.map((each) => [each])]) {
      const id = await create(app, { name: `gone-${filled.length}-${filled[0]!.name}` })
      await fill(app, id, filled)
      const before = await read(app, id)
      await sql`update sandboxes set gone_at = '2030-01-01' where id = ${id}`
      const after = await read(app, id)
      const emptyOf = ({ name, type }: Stored) => (type === 'ARRAY' || lists[name] ? [] : {})
      const emptied = shed.map((each) => [each.name, each.isNullable ? null : emptyOf(each)])
      const expected = { ...before, ...Object.fromEntries(emptied), gone_at: after['gone_at'] }
      // `due_at` and `label_signature` are computed by the database from other columns.
      for (const row of [expected, after] as Record<string, unknown>[])
        for (const name of ['due_at', 'label_signature']) delete row[name]
      assert.deepEqual(after, expected)
    }
  })

  test('each text column that a create can fill is emptied when the runner has removed the sandbox', () => {
    const written = names.filter((name) => {
      const { asked } = columns[name] as { asked?: { shape: { type?: string } } }
      return asked?.shape.type === 'string' && columns[name].gone !== 'shed'
    })
    assert.deepEqual(written, [])
  })

  test('a fork copies a column exactly if `columns.ts` marks it as `copied`', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app, { labels: { a: 'b' } })
    const parent = await read(app, id)
    const copied = namesWhere({ fork: 'copied' })
    const unset = (await storedColumns(app)).filter(({ name }) => copied.includes(name) && isEmpty(parent[name]))
    await fill(app, id, unset)
    const reply = await app.as('owner').post(`/sandbox/${id}/fork`, { name: 'child' })
    assert.equal(reply.status, 200, reply.text)
    const [before, after] = [await read(app, id), await read(app, reply.body.id)]
    for (const name of copied) {
      // The number 0 is a value (an interval of 0 minutes means never), so such a column is not empty.
      assert.ok(!isEmpty(before[name]), `the parent has nothing in ${name}`)
      assert.deepEqual(after[name], before[name], name)
    }
  })
})

suite('a field of POST /sandbox that is stored unchanged', () => {
  const sampleOf = ({ type }: { type?: string }) =>
    ({ string: 'sample', boolean: true, integer: 7, number: 7 })[type ?? ''] ?? assert.fail(`no sample of ${type}`)
  const asked = names.flatMap((name) => {
    const { asked: field, shown } = columns[name] as { asked?: { shape: object }; shown?: { name: string; in: string } }
    return field === undefined
      ? []
      : [{ name: shown!.name, sample: sampleOf(field.shape), isListed: shown!.in === 'lists' }]
  })
  const body = Object.fromEntries(asked.map(({ name, sample }) => [name, sample]))
  const shownIn = (record: Record<string, unknown>) => Object.fromEntries(asked.map(({ name }) => [name, record[name]]))

  test('a field of POST /sandbox that is stored unchanged is in all replies; a wrong type answers 400', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const made = await app.as('owner').post('/sandbox', { name: 'box', ...body })
    assert.deepEqual([made.status, shownIn(made.body)], [200, body])
    assert.deepEqual(shownIn((await app.as('owner').get('/sandbox/box')).body), body)
    const [item] = (await app.as('owner').get('/sandbox')).body.items
    const [paged] = (await app.as('owner').get('/sandbox/paginated')).body.items
    for (const { name, sample, isListed } of asked)
      assert.deepEqual([item[name], paged[name]], [isListed ? sample : undefined, sample], name)
    for (const { name } of asked) assert.equal((await app.as('owner').post('/sandbox', { [name]: [[]] })).status, 400)
  })

  test('each field of POST /sandbox that is stored unchanged reaches a claimed warm sandbox and its fork', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    assert.equal((await app.as('owner').post('/warm-pools', { snapshot: 'default', pool: 1 })).status, 201)
    await app.sweep()
    const [warm] = (await app.as('owner').get('/sandbox?includeWarm=true')).body.items
    await untilState(app, warm.id, 'started')
    const made = await app.as('owner').post('/sandbox', { name: 'box', ...body })
    assert.deepEqual([made.status, made.body.id, shownIn(made.body)], [200, warm.id, body])
    const fork = await app.as('owner').post('/sandbox/box/fork', { name: 'child' })
    assert.deepEqual([fork.status, shownIn(fork.body)], [200, body])
  })
})
