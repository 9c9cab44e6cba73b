import { countTokens } from 'gpt-tokenizer'
import t from 'tap'
import { at, items, members } from '../support/documents.ts'
import {
  BASE_URL,
  exampleCall,
  openProductionService,
  paid,
  samples,
  textAt,
} from './support/shipped-service.ts'
import { openConformanceTester } from './support/lighthouse.ts'

const service = await openProductionService(t)

/** Addresses of a document that are on this service. */
function ownLinks(text: string): string[] {
  return [...text.matchAll(/\]\((\S+?)\)/g)]
    .map(([, url = '']) => url)
    .filter((url) => url.startsWith(BASE_URL))
}

t.test('leads a language model to the right price over working links', async (t) => {
  const answer = await service.ask('/llms.txt')
  const text = await answer.text()
  t.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8')
  // What Lighthouse asks for: a first-level heading, a link, and more than a line.
  t.match(text, /^\s*#\s+.+/)
  t.match(text, /\[[^\]]+\]\([^)]+\)/)
  t.ok(text.length >= 50)
  t.match(text, /^# [^\n]+\n\n> [^\n]+\n/)
  t.equal(text.match(/^# /gm)?.length, 1)
  for (const { path, price } of paid) {
    const lines = text.split('\n').filter((line) => line.includes(`](${BASE_URL}${path})`))
    t.equal(lines.length, 1, path)
    t.match(lines[0], `: $${price.replace(/(\.\d\d\d*?)0+$/, '$1')}. `)
  }
  t.ok(countTokens(text) <= 3_000, `${countTokens(text)} tokens`)
  const links = new Set(ownLinks(text))
  t.ok(links.size > paid.length)
  for (const link of links) {
    const path = link.slice(BASE_URL.length)
    // A preview would ask its outside sources.
    if (path.startsWith('/sample/'))
      t.ok(
        samples.some((sample) => sample.path === path),
        path,
      )
    else t.ok([200, 402].includes((await service.ask(path.replace('{appid}', '730'))).status), path)
  }
})

t.test('serves a manifest that Lighthouse accepts', async (t) => {
  const text = await service.read('/.well-known/ard.json')
  t.equal(await service.read('/.well-known/ai-catalog.json'), text)
  const tester = await openConformanceTester()
  t.ok(tester.validate_manifest(text, 'ard.json'))
  t.strictSame(tester.errors, [])
  t.strictSame(tester.warnings, [])
  const manifest = await service.readJson('/.well-known/ard.json')
  t.ok(items(manifest['entries']).length >= 2)
  for (const entry of items(manifest['entries'])) {
    t.match(at(entry, 'identifier'), new RegExp(`^urn:air:${new URL(BASE_URL).hostname}:`))
    const { length } = items(at(entry, 'representativeQueries'))
    t.ok(length >= 2 && length <= 5, `${length} queries`)
    const url = textAt(at(entry, 'url'))
    t.equal((await service.ask(url)).status, 200, url)
  }
})

t.test('shows by an empty manifest that Lighthouse reports errors', async (t) => {
  const tester = await openConformanceTester()
  t.notOk(tester.validate_manifest('{"specVersion":"1.0","entries":[{"identifier":"x"}]}', 'bad'))
  t.ok(tester.errors.length > 2)
})

t.test('leads a client from the API catalog to every description', async (t) => {
  const answer = await service.ask('/.well-known/api-catalog')
  t.equal(
    answer.headers.get('content-type'),
    'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
  )
  const head = await service.ask('/.well-known/api-catalog', { method: 'HEAD' })
  t.equal(head.status, 200)
  t.match(head.headers.get('link'), /<[^>]*\/\.well-known\/api-catalog>; rel="?api-catalog"?/)
  const { linkset } = await service.readJson('/.well-known/api-catalog')
  const [context] = items(linkset)
  t.match(at(context ?? null, 'anchor'), BASE_URL)
  const targets = members(context ?? null).flatMap(([rel, value]) =>
    items(value).map((each) => ({ rel, href: textAt(at(each, 'href')) })),
  )
  for (const rel of ['service-desc', 'service-doc', 'service-meta', 'status'])
    t.ok(
      targets.some((target) => target.rel === rel),
      rel,
    )
  for (const { href } of targets) t.equal((await service.ask(href)).status, 200, href)
})

t.test('names every endpoint with its parameters in the long guide', async (t) => {
  const text = await service.read('/llms-full.txt')
  for (const { path, parameters } of paid) {
    const [, chapter = ''] = text.split(`\n\`GET ${BASE_URL}${path}\`\n`)
    const [own = ''] = chapter.split(/^### /m)
    for (const { name } of parameters) t.match(own, `\`${name}\``, `${path} ${name}`)
    t.match(own, BASE_URL + exampleCall(path).split('?')[0], path)
  }
  for (const { path } of samples) t.match(text, `Free preview \`${path}\`.`, path)
})
