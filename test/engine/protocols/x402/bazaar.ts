import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/engine/json.ts'
import { examplePath } from '../../../../src/engine/catalog/catalog.ts'
import { bazaarExtension, detailsOf } from '../../../../src/engine/protocols/x402/bazaar.ts'
import { paidRoutes, shippedCatalog } from '../../../support/x402.ts'

const routes = paidRoutes(shippedCatalog())
// At its strictest: a keyword or a format that a facilitator does not know would drop the listing.
const ajv = new Ajv2020()

function member(value: Json | undefined, ...path: readonly string[]): Json | undefined {
  return path.reduce<Json | undefined>((at, key) => (isJsonObject(at) ? at[key] : undefined), value)
}

t.test(
  'a facilitator lists every route: what is shown satisfies the schema beside it, in every detail',
  async (t) => {
    for (const route of routes) {
      for (const detail of detailsOf(route)) {
        const { info, schema } = bazaarExtension(route, detail)
        if (!isJsonObject(schema)) throw new Error('no schema')
        const validate = ajv.compile(schema)
        t.ok(
          validate(info),
          `${route.path} ${detail.input} ${detail.members}: ${ajv.errorsText(validate.errors)}`,
        )
        t.notMatch(JSON.stringify(schema), /\$ref/)
        t.equal(member(schema, 'properties', 'input', 'properties', 'queryParams', 'type'), 'object')
      }
    }
  },
)

t.test('a prober that fills in the defaults does not contradict the schema it read them from', async (t) => {
  for (const route of routes) {
    for (const detail of detailsOf(route)) {
      const { schema } = bazaarExtension(route, detail)
      const properties = member(schema, 'properties', 'input', 'properties', 'queryParams', 'properties')
      for (const [name, property] of Object.entries((properties ?? {}) as JsonObject)) {
        if (!isJsonObject(property) || property['default'] === undefined) continue
        t.ok(ajv.validate(property, property['default']), `${route.path} ${name}`)
      }
    }
  }
})

t.test('the example of a templated path can be called, and is no placeholder', async (t) => {
  const [route] = routes.filter(({ path }) => path.includes('{'))
  if (route === undefined) throw new Error('no templated route')
  const [detail] = detailsOf(route)
  if (detail === undefined) throw new Error('no detail')
  const extension = bazaarExtension(route, detail)
  t.equal(examplePath(route), '/paid/gamestore/app/730')
  t.equal(extension['routeTemplate'], '/paid/gamestore/app/:appid')
  t.strictSame(member(extension, 'info', 'input', 'pathParams'), { appid: '730' })
  t.strictSame(
    member(extension, 'schema', 'properties', 'input', 'properties', 'pathParams', 'properties', 'appid'),
    { type: 'string' },
    'a probe may put the template there',
  )
})

t.test('each step says no more than the one before', async (t) => {
  for (const route of routes) {
    const sizes = [...detailsOf(route)].map((detail) => JSON.stringify(bazaarExtension(route, detail)).length)
    t.strictSame(
      sizes,
      [...sizes].sort((a, b) => b - a),
      route.path,
    )
  }
})
