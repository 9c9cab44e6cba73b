import t from 'tap'
import type { Route } from '../../../src/engine/catalog/catalog.ts'
import { canonicalPath } from '../../../src/engine/http/path.ts'
import { createTable, type RouteTable } from '../../../src/engine/http/table.ts'
import { compileRoutes } from '../../support/compiled.ts'

interface Served {
  readonly route: Route
}

function tableOf(routes: readonly Route[]): RouteTable<Served> {
  return createTable(
    routes.map((route) => ({ route })),
    () => async () => undefined,
  )
}

const [TEMPLATE] = compileRoutes('  /paid/x: { price: 1, summary: X }\n').routes

function routesAt(...paths: readonly string[]): readonly Route[] {
  if (TEMPLATE === undefined) throw new Error('no route')
  return paths.map((path) => ({
    ...TEMPLATE,
    path,
    name: path.slice(1).replace(/[{}]/g, '').replaceAll('/', '_'),
  }))
}

/** `path` → the route's path and the values of its templates. */
function found(
  table: RouteTable<Served>,
  path: string,
): readonly [string, Record<string, string>] | undefined {
  const hit = table.find(path)
  return hit === undefined ? undefined : [hit.served.route.path, { ...hit.path }]
}

t.test('an exact path wins over a template, whichever is written first', async (t) => {
  for (const paths of [
    ['/paid/app/{appid}', '/paid/app/latest'],
    ['/paid/app/latest', '/paid/app/{appid}'],
  ]) {
    const table = tableOf(routesAt(...paths))
    t.strictSame(found(table, '/paid/app/latest'), ['/paid/app/latest', {}])
    t.strictSame(found(table, '/paid/app/730'), ['/paid/app/{appid}', { appid: '730' }])
  }
})

t.test('the longer fixed beginning wins', async (t) => {
  const table = tableOf(routesAt('/paid/{a}/{b}/{c}', '/paid/x/{b}/{c}', '/paid/x/y/{c}', '/paid/x/{b}/z'))
  t.strictSame(found(table, '/paid/x/y/1'), ['/paid/x/y/{c}', { c: '1' }])
  t.strictSame(found(table, '/paid/q/y/1'), ['/paid/{a}/{b}/{c}', { a: 'q', b: 'y', c: '1' }])
  t.strictSame(found(table, '/paid/x/q/1'), ['/paid/x/{b}/{c}', { b: 'q', c: '1' }])
})

t.test('with the same beginning, more fixed segments win, whichever is written first', async (t) => {
  for (const paths of [
    ['/paid/{user}/{item}', '/paid/{user}/orders'],
    ['/paid/{user}/orders', '/paid/{user}/{item}'],
  ]) {
    const table = tableOf(routesAt(...paths))
    t.strictSame(found(table, '/paid/ann/orders'), ['/paid/{user}/orders', { user: 'ann' }])
    t.strictSame(found(table, '/paid/ann/shoes'), ['/paid/{user}/{item}', { user: 'ann', item: 'shoes' }])
  }
})

t.test('a template takes one segment, decoded once', async (t) => {
  const table = tableOf(routesAt('/paid/word/{word}'))
  for (const [path, word] of [
    ['/paid/word/a%20b', 'a b'],
    ['/paid/word/%2520', '%20'],
    ['/paid/word/%3F%23', '?#'],
    ['/paid/word/sm%C3%B8r', 'smør'],
    ['/paid/word/:word', ':word'],
    ['/paid/word/*', '*'],
    ['/paid/word/(.*)', '(.*)'],
    ['/paid/word/$&', '$&'],
    ['/paid/word/a+b', 'a+b'],
    ['/paid/word/constructor', 'constructor'],
    ['/paid/word/__proto__', '__proto__'],
  ] as const) {
    t.equal(canonicalPath(path), path)
    t.strictSame(found(table, path), ['/paid/word/{word}', { word }], path)
  }
  for (const path of [
    '/paid/word',
    '/paid/word/',
    '/paid/word/a/b',
    '/paid/words/a',
    '/paid/word/%',
    '/x/paid/word/a',
  ]) {
    t.equal(found(table, path), undefined, path)
  }
})

t.test('marks of regular expressions in a path are only marks', async (t) => {
  const table = tableOf(routesAt('/paid/v1.0/a-b', '/paid/v1.0/{id}', '/paid/a_~b'))
  t.strictSame(found(table, '/paid/v1.0/a-b'), ['/paid/v1.0/a-b', {}])
  t.strictSame(found(table, '/paid/v1.0/7'), ['/paid/v1.0/{id}', { id: '7' }])
  for (const path of [
    '/paid/v1x0/a-b',
    '/paid/v1x0/7',
    '/paid/:',
    '/paid/*',
    '/paid/{id}',
    '/paid/.*',
    '/.*',
  ]) {
    t.equal(found(table, path), undefined, path)
  }
})

t.test('case counts', async (t) => {
  const table = tableOf(routesAt('/paid/Ping', '/paid/app/{id}'))
  t.strictSame(found(table, '/paid/Ping'), ['/paid/Ping', {}])
  for (const path of ['/paid/ping', '/PAID/Ping', '/paid/App/1']) t.equal(found(table, path), undefined, path)
})

t.test('every route is a named layer, so that the router’s own tools work', async (t) => {
  const { router } = tableOf(routesAt('/paid/app/{appid}', '/paid/ping'))
  t.equal(router.url('paid_app_appid', { appid: 'a/b' }), '/paid/app/a%2Fb')
  t.equal(router.url('paid_ping'), '/paid/ping')
  t.equal(router.stack.length, 2)
})

t.test('each of 5,000 routes is found, and only by its own path', async (t) => {
  const paths = Array.from({ length: 5_000 }, (_, index) => {
    const group = `/paid/group${index % 50}/item${index}`
    return index % 5 === 0 ? `${group}/{id}` : group
  })
  const table = tableOf(routesAt(...paths))
  const misses: string[] = []
  for (const path of paths) {
    const asked = path.replace('{id}', 'x1')
    const hit = found(table, asked)
    if (hit?.[0] !== path || (path.includes('{') && hit[1]['id'] !== 'x1')) misses.push(path)
    if (table.find(`${asked}/more`) !== undefined || table.find(asked.slice(0, -1)) === undefined) continue
    // A shorter name may be another route, but never this one.
    if (table.find(asked.slice(0, -1))?.served.route.path === path && !path.includes('{')) misses.push(asked)
  }
  t.strictSame(misses, [])
  t.equal(table.router.stack.length, 5_000)
})

t.test('a lookup asks as few layers with 5,000 templates as with one', async (t) => {
  const table = tableOf(routesAt(...Array.from({ length: 5_000 }, (_, index) => `/paid/kind${index}/{id}`)))
  let asked = 0
  for (const layer of table.router.stack) {
    const original = layer.regexp
    Object.defineProperty(layer, 'regexp', {
      get: () => {
        asked += 1
        return original
      },
    })
  }
  t.strictSame(found(table, '/paid/kind4999/7'), ['/paid/kind4999/{id}', { id: '7' }])
  t.equal(asked, 1)
  t.equal(found(table, '/paid/nothing/7'), undefined)
  t.equal(asked, 1)
})

t.test('5,000 routes below one template cost a lookup no more than one', async (t) => {
  const table = tableOf(routesAt(...Array.from({ length: 5_000 }, (_, index) => `/paid/{id}/kind${index}`)))
  let asked = 0
  for (const layer of table.router.stack) {
    const original = layer.regexp
    Object.defineProperty(layer, 'regexp', {
      get: () => {
        asked += 1
        return original
      },
    })
  }
  t.strictSame(found(table, '/paid/7/kind4999'), ['/paid/{id}/kind4999', { id: '7' }])
  t.equal(asked, 1)
  t.equal(found(table, '/paid/7/nothing'), undefined)
  t.equal(asked, 1)
})

t.test('a fixed segment that leads nowhere does not hide the template beside it', async (t) => {
  const table = tableOf(routesAt('/paid/app/news/{day}', '/paid/app/{appid}/prices'))
  t.strictSame(found(table, '/paid/app/news/prices'), ['/paid/app/news/{day}', { day: 'prices' }])
  t.strictSame(found(table, '/paid/app/730/prices'), ['/paid/app/{appid}/prices', { appid: '730' }])
  const other = tableOf(routesAt('/paid/app/news/today', '/paid/app/{appid}/prices'))
  t.strictSame(found(other, '/paid/app/news/prices'), ['/paid/app/{appid}/prices', { appid: 'news' }])
})
