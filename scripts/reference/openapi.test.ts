import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { openApiFiles } from './openapi.ts'

suite('OpenAPI documents', () => {
  for (const [name, text] of Object.entries(openApiFiles())) {
    test(`the OpenAPI document ${name} is valid OpenAPI 3.1, and each operationId occurs once`, async () => {
      const document = JSON.parse(text) as { paths: Record<string, Record<string, { operationId: string }>> }
      const { valid, errors } = await new Validator().validate(document)
      assert.ok(valid, JSON.stringify(errors))
      const names = Object.values(document.paths).flatMap((path) => Object.values(path).map((one) => one.operationId))
      assert.ok(names.length > 70)
      assert.equal(new Set(names).size, names.length)
    })
  }
})
