import t from 'tap'
import { colonTemplate } from '../../../../src/engine/catalog/catalog.ts'
import { IndexedRouter } from '../../../../src/engine/http/indexed-router.ts'
import { canonicalPath } from '../../../../src/engine/http/request-target.ts'

function routerOf(...paths: readonly string[]): IndexedRouter {
  const router = new IndexedRouter()
  for (const path of paths)
    router.get(path.slice(1).replace(/[{}]/g, '').replaceAll('/', '_'), colonTemplate(path), () => undefined)
  return router
}

/** `path` → the path of the layer that answers and the values of its templates. */
function found(
  router: IndexedRouter,
  path: string,
  method = 'GET',
): readonly [string, Record<string, string>] | undefined {
  const [layer] = router.match(path, method).pathAndMethod
  return (
    layer && [String(layer.path).replace(/:(\w+)/g, '{$1}'), { ...layer.params(path, layer.captures(path)) }]
  )
}

t.test('prefers an exact path to a template, in any order', async (t) => {
  for (const paths of [
    ['/paid/app/{appid}', '/paid/app/latest'],
    ['/paid/app/latest', '/paid/app/{appid}'],
  ]) {
    const router = routerOf(...paths)
    t.strictSame(found(router, '/paid/app/latest'), ['/paid/app/latest', {}])
    t.strictSame(found(router, '/paid/app/730'), ['/paid/app/{appid}', { appid: '730' }])
  }
})

t.test('prefers the longer fixed prefix', async (t) => {
  const router = routerOf('/paid/{a}/{b}/{c}', '/paid/x/{b}/{c}', '/paid/x/y/{c}', '/paid/x/{b}/z')
  t.strictSame(found(router, '/paid/x/y/1'), ['/paid/x/y/{c}', { c: '1' }])
  t.strictSame(found(router, '/paid/q/y/1'), ['/paid/{a}/{b}/{c}', { a: 'q', b: 'y', c: '1' }])
  t.strictSame(found(router, '/paid/x/q/1'), ['/paid/x/{b}/{c}', { b: 'q', c: '1' }])
})

t.test('prefers more fixed segments after the same prefix, in any order', async (t) => {
  for (const paths of [
    ['/paid/{user}/{item}', '/paid/{user}/orders'],
    ['/paid/{user}/orders', '/paid/{user}/{item}'],
  ]) {
    const router = routerOf(...paths)
    t.strictSame(found(router, '/paid/ann/orders'), ['/paid/{user}/orders', { user: 'ann' }])
    t.strictSame(found(router, '/paid/ann/shoes'), ['/paid/{user}/{item}', { user: 'ann', item: 'shoes' }])
  }
})

t.test('prefers a template with a suffix, in any order', async (t) => {
  const paths = ['/paid/report/{id}', '/paid/report/{id}.pdf', '/paid/report/{id}.min.pdf']
  for (const given of [paths, paths.toReversed()]) {
    const router = routerOf(...given)
    t.strictSame(found(router, '/paid/report/7'), ['/paid/report/{id}', { id: '7' }])
    t.strictSame(found(router, '/paid/report/7.pdf'), ['/paid/report/{id}.pdf', { id: '7' }])
    t.strictSame(found(router, '/paid/report/a%2Fb.min.pdf'), ['/paid/report/{id}.min.pdf', { id: 'a/b' }])
    t.strictSame(found(router, '/paid/report/.pdf'), ['/paid/report/{id}', { id: '.pdf' }])
  }
})

t.test('matches one segment with a template, decoded once', async (t) => {
  const router = routerOf('/paid/word/{word}')
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
    t.strictSame(found(router, path), ['/paid/word/{word}', { word }], path)
  }
  for (const path of ['/paid/word', '/paid/word/', '/paid/word/a/b', '/paid/words/a', '/x/paid/word/a']) {
    t.equal(found(router, path), undefined, path)
  }
})

t.test('matches characters of regular expressions in a path literally', async (t) => {
  const router = routerOf('/paid/v1.0/a-b', '/paid/v1.0/{id}', '/paid/a_~b')
  t.strictSame(found(router, '/paid/v1.0/a-b'), ['/paid/v1.0/a-b', {}])
  t.strictSame(found(router, '/paid/v1.0/7'), ['/paid/v1.0/{id}', { id: '7' }])
  for (const path of [
    '/paid/v1x0/a-b',
    '/paid/v1x0/7',
    '/paid/:',
    '/paid/*',
    '/paid/{id}',
    '/paid/.*',
    '/.*',
  ]) {
    t.equal(found(router, path), undefined, path)
  }
})

t.test('matches case', async (t) => {
  const router = routerOf('/paid/Ping', '/paid/app/{id}')
  t.strictSame(found(router, '/paid/Ping'), ['/paid/Ping', {}])
  for (const path of ['/paid/ping', '/PAID/Ping', '/paid/App/1'])
    t.equal(found(router, path), undefined, path)
})

t.test('keeps every route a named layer, so that the router’s own tools work', async (t) => {
  const router = routerOf('/paid/app/{appid}', '/paid/ping')
  t.equal(router.url('paid_app_appid', { appid: 'a/b' }), '/paid/app/a%2Fb')
  t.equal(router.url('paid_ping'), '/paid/ping')
  t.equal(router.stack.length, 2)
})

t.test('finds each of 5,000 routes by its own path only', async (t) => {
  const paths = Array.from({ length: 5_000 }, (_, index) => {
    const group = `/paid/group${index % 50}/item${index}`
    return index % 5 === 0 ? `${group}/{id}` : group
  })
  const router = routerOf(...paths)
  const misses: string[] = []
  for (const path of paths) {
    const asked = path.replace('{id}', 'x1')
    const hit = found(router, asked)
    if (hit?.[0] !== path || (path.includes('{') && hit[1]['id'] !== 'x1')) misses.push(path)
    if (found(router, `${asked}/more`) !== undefined) misses.push(`${asked}/more`)
    // A shorter name may be another route, but never this one.
    if (found(router, asked.slice(0, -1))?.[0] === path && !path.includes('{')) misses.push(asked)
  }
  t.strictSame(misses, [])
  t.equal(router.stack.length, 5_000)
})

t.test('asks as few layers with 5,000 templates as with one', async (t) => {
  const router = routerOf(...Array.from({ length: 5_000 }, (_, index) => `/paid/kind${index}/{id}`))
  let asked = 0
  for (const layer of router.stack) {
    const original = layer.regexp
    Object.defineProperty(layer, 'regexp', {
      get: () => {
        asked += 1
        return original
      },
    })
  }
  t.equal(router.match('/paid/kind4999/7', 'GET').path.length, 1)
  t.equal(asked, 1)
  t.equal(router.match('/paid/nothing/7', 'GET').route, false)
  t.equal(asked, 1)
})

t.test('asks as few layers with 5,000 routes below one template as with one', async (t) => {
  const router = routerOf(...Array.from({ length: 5_000 }, (_, index) => `/paid/{id}/kind${index}`))
  let asked = 0
  for (const layer of router.stack) {
    const original = layer.regexp
    Object.defineProperty(layer, 'regexp', {
      get: () => {
        asked += 1
        return original
      },
    })
  }
  t.equal(router.match('/paid/7/kind4999', 'GET').path.length, 1)
  t.equal(asked, 1)
  t.equal(router.match('/paid/7/nothing', 'GET').route, false)
  t.equal(asked, 1)
})

t.test('tries the template when a fixed segment leads nowhere', async (t) => {
  const router = routerOf('/paid/app/news/{day}', '/paid/app/{appid}/prices')
  t.strictSame(found(router, '/paid/app/news/prices'), ['/paid/app/news/{day}', { day: 'prices' }])
  t.strictSame(found(router, '/paid/app/730/prices'), ['/paid/app/{appid}/prices', { appid: '730' }])
  const other = routerOf('/paid/app/news/today', '/paid/app/{appid}/prices')
  t.strictSame(found(other, '/paid/app/news/prices'), ['/paid/app/{appid}/prices', { appid: 'news' }])
})

t.test('names the methods of the exact path and of templates in Allow', async (t) => {
  const router = routerOf('/paid/app/{appid}', '/paid/app/latest')
  router.post('create', '/paid/app/:appid', () => undefined)
  t.strictSame(found(router, '/paid/app/latest'), ['/paid/app/latest', {}])
  t.strictSame(found(router, '/paid/app/latest', 'POST'), ['/paid/app/{appid}', { appid: 'latest' }])
  const { path, route } = router.match('/paid/app/730', 'PUT')
  t.equal(route, false)
  t.same(new Set(path.flatMap(({ methods }) => methods)), new Set(['HEAD', 'GET', 'POST']))
})

t.test('runs middleware and patterns of the router next to indexed routes', async (t) => {
  const router = routerOf('/paid/ping')
  router.use(() => undefined)
  router.get('any', '/files/*path', () => undefined)
  t.equal(router.match('/paid/ping', 'GET').pathAndMethod.length, 2)
  t.equal(router.match('/files/a/b', 'GET').route, true)
  t.equal(router.match('/nothing', 'GET').route, false)
})
