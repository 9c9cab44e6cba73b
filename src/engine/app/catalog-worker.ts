import { parentPort } from 'node:worker_threads'
import type { Catalog, Operation, Route } from '../catalog/catalog.ts'
import { CatalogError } from '../catalog/issue.ts'
import type { Mark } from '../catalog/load-catalog.ts'
import type { Answer, Question, SentFacts, Slice } from './catalog-thread.ts'
import type { Facts } from '../documents/registry.ts'
import type { Pages } from '../http/rendered-pages.ts'

let sending: Iterator<Slice> = [].values()
const operations: Operation[] = []
const routes: Route[] = []

/** A thread reads or renders: it loads the modules of one of them only. */
async function answer(question: Question): Promise<Answer> {
  switch (question.kind) {
    case 'read':
      return read(question)
    case 'next': {
      const { value, done } = sending.next()
      return { kind: 'slice', slice: done === true ? undefined : value }
    }
    case 'take':
      operations.push(...question.slice.operations)
      routes.push(...question.slice.routes)
      return { kind: 'taken' }
    case 'render': {
      const { renderPages } = await import('../http/rendered-pages.ts')
      const catalog = { ...question.head, operations, routes }
      return { kind: 'rendered', pages: renderPages(catalog, await factsOf(catalog, question.facts)) }
    }
  }
}

async function read({ place, loaded, baseUrl }: Question & { readonly kind: 'read' }): Promise<Answer> {
  const { loadServed, slicesOf } = await import('./catalog-thread.ts')
  const files = new Map<string, Mark>()
  try {
    const { catalog, warnings, text } = loadServed(place, loaded, baseUrl, files)
    sending = slicesOf(catalog)
    const { operations: _, routes: __, ...head } = catalog
    return { kind: 'read', head, warnings, text, files }
  } catch (fault) {
    if (!(fault instanceof CatalogError)) throw fault
    const { file, text, issues } = fault
    return { kind: 'refused', file, text, issues, files }
  }
}

/** The render facts from those that were sent, with the published challenges. */
async function factsOf(catalog: Catalog, { ready, offers, ...facts }: SentFacts): Promise<Facts> {
  const { exampleAmount } = await import('../payment/call-price.ts')
  const { createChallenge } = await import('../x402/x402-challenge.ts')
  const settings = {
    service: catalog.service,
    baseUrl: facts.baseUrl,
    offers,
    v1: false,
    nextToken: () => '',
  }
  const published = new Map(
    catalog.routes.flatMap((route) => {
      const price = exampleAmount(route.operation)
      if (route.kind !== 'paid' || price === undefined || offers.length === 0) return []
      return [[route.name, createChallenge(route, price, settings).published] as const]
    }),
  )
  return {
    ...facts,
    available: ({ id }) => ready.has(id),
    paymentRequired: ({ name }) => published.get(name),
  }
}

/** Memory of large pages is transferred; small pages share theirs with others and are copied. */
function memoryOf(pages: Pages): ArrayBuffer[] {
  const bodies = [...pages.values()].flatMap(({ body, shown }) => [body, ...(shown ? [shown.body] : [])])
  const whole = bodies.flatMap(({ buffer, byteLength }) =>
    buffer instanceof ArrayBuffer && byteLength > 0 && buffer.byteLength === byteLength ? [buffer] : [],
  )
  return [...new Set(whole)]
}

async function reply(question: Question): Promise<void> {
  const answered = await answer(question)
  parentPort?.postMessage(answered, answered.kind === 'rendered' ? memoryOf(answered.pages) : [])
}

parentPort?.on('message', (question: Question) => void reply(question))
