import t from 'tap'
import { formOf, properName } from '../../../../src/engine/catalog/patterns.ts'
import { catalogSchema } from '../../../../src/engine/catalog/schema.ts'

function patternsOf(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  const entries: [string, unknown][] = Object.entries(schema)
  return entries.flatMap(([key, value]) =>
    key === 'pattern' && typeof value === 'string' ? [value] : patternsOf(value),
  )
}

const patterns = [...new Set(patternsOf(catalogSchema))]

t.test('explains every pattern of the schema in words', async (t) => {
  t.ok(patterns.length > 10)
  for (const pattern of patterns) {
    t.ok(formOf(pattern), pattern)
  }
})

t.test('offers a name that the catalog accepts', async (t) => {
  const names = [
    'appId',
    'App Id',
    '{n}',
    '_x_',
    '9lives',
    'Größe',
    '',
    '---',
    'a__b',
    'HTTPCode',
    'robots.txt',
  ]
  for (const pattern of patterns.filter((each) => /^\^(\/|\[a-z\]\[a-z0-9[_-]+\]\*\$)$/.test(each))) {
    for (const name of names)
      t.match(properName(name, pattern), new RegExp(pattern), `${name} for ${pattern}`)
  }
  t.equal(properName('appId', '^[a-z][a-z0-9_]*$'), 'app_id')
  t.equal(properName('Game_Store', '^[a-z][a-z0-9-]*$'), 'game-store')
  t.equal(properName('robots.txt', '^/'), '/robots.txt')
})
