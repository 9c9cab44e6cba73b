import { createHash } from 'node:crypto'
import { type Catalog, type Route, routeKey } from '../catalog/catalog.ts'
import { isJsonObject, type Json, type JsonObject } from '../json.ts'
import { findNetwork } from '../networks.ts'
import type { Facts } from './registry.ts'
import { exampleUrl, quotable } from './example.ts'
import { frame, policyOf, readPage, styleSheetOf } from './page.ts'
import { charging, sentence } from './copy.ts'

interface PaymentPage {
  readonly catalog: Catalog
  readonly facts: Facts
  readonly route: Route
  /** What was asked for, with its query. */
  readonly url: string
  /** Body of the 402: the page says what it says. */
  readonly problem: JsonObject
}

const print = readPage('payment-required.html.hbs')

interface RenderedPage {
  readonly html: string
  /** Content-Security-Policy: the style the page carries, the icon, no script, no frame around it. */
  readonly policy: string
}

/** The 402 of a paid path for people who open it in a browser. */
export function renderPaymentPage({ catalog, facts, route, url, problem }: PaymentPage): RenderedPage {
  const { price } = problem
  const title = text(problem['title'])
  const summary = sentence(route.summary)
  const style = styleSheetOf(catalog)
  const html = print({
    page: frame(catalog, facts, {
      title: `${title}: ${routeKey(route)}`,
      description: summary,
      url: '',
      style,
    }),
    title,
    method: route.operation.method,
    path: route.path,
    summary,
    description: route.operation.description ?? '',
    price: isJsonObject(price) ? text(price['amount']) : '',
    detail: sentence(upperFirst(text(problem['detail']))),
    networks: networks(problem['accepts']),
    charging: charging(route),
    wouldFail: wouldFail(problem['would_fail']),
    sample: sampleOf(catalog, facts, route) ?? text(problem['sample']),
    docs: text(problem['docs']),
    url: quotable(url),
    client: text(problem['client']),
  })
  const hash = createHash('sha256').update(style).digest('base64')
  return { html, policy: policyOf(`'sha256-${hash}'`) }
}

/** A sample that answers as it stands; undefined when its bare path does. */
function sampleOf(catalog: Catalog, facts: Facts, route: Route): string | undefined {
  const preview = catalog.routes.find(
    ({ kind, operation }) => kind === 'sample' && operation === route.operation,
  )
  const needs = preview?.parameters.some(({ required }) => required) ?? false
  return preview !== undefined && needs ? exampleUrl(facts.baseUrl, preview) : undefined
}

function networks(accepts: Json | undefined): string {
  const titles = (Array.isArray(accepts) ? accepts : []).flatMap((offer: Json) => {
    const id = isJsonObject(offer) ? text(offer['network']) : ''
    return id === '' ? [] : [findNetwork(id)?.title ?? id]
  })
  const last = titles.pop() ?? ''
  return titles.length === 0 ? last : `${titles.join(', ')} or ${last}`
}

function wouldFail(failure: Json | undefined): string {
  if (!isJsonObject(failure)) return ''
  const { detail } = failure
  const reasons = Array.isArray(detail) ? detail.map(reason).join('; ') : text(detail)
  return sentence(`As it stands, this request would be refused even if it were paid for: ${reasons}`)
}

function reason(item: Json): string {
  if (!isJsonObject(item)) return ''
  const { loc, msg } = item
  return `${Array.isArray(loc) ? text(loc.at(-1)) : ''}: ${text(msg)}`
}

function text(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

function upperFirst(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1)
}
