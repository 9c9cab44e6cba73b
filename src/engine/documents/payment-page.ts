import Handlebars from 'handlebars'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Catalog, Route } from '../catalog/catalog.ts'
import { isJsonObject, type Json, type JsonObject } from '../json.ts'
import { findNetwork } from '../networks.ts'
import type { TemplateContext } from './text.ts'
import { SANDBOX, sentence } from './wording.ts'

export interface PaymentPage {
  readonly catalog: Catalog
  readonly sandbox: boolean
  readonly route: Route
  /** What was asked for, with its query. */
  readonly url: string
  /** Body of the 402: the page says what it says. */
  readonly problem: JsonObject
}

const FOLDER = new URL('../../../templates/', import.meta.url)
const STYLE = readFileSync(new URL('payment-required.css', FOLDER), 'utf8')
const SOURCE = readFileSync(new URL('payment-required.html.hbs', FOLDER), 'utf8')
const print = Handlebars.create().compile<TemplateContext>(SOURCE, { strict: true })

/** Content-Security-Policy of the page: its own style and nothing else, no script, no frame around it. */
export const PAYMENT_PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** The 402 of a paid path for people who open it in a browser. */
export function renderPaymentPage({ catalog, sandbox, route, url, problem }: PaymentPage): string {
  const { price } = problem
  return print({
    style: STYLE,
    title: text(problem['title']),
    path: route.path,
    service: catalog.service.name,
    sandbox: sandbox ? SANDBOX : '',
    summary: sentence(route.summary),
    description: route.operation.description ?? '',
    price: isJsonObject(price) ? text(price['amount']) : '',
    detail: sentence(upperFirst(text(problem['detail']))),
    networks: networks(problem['accepts']),
    wouldFail: wouldFail(problem['would_fail']),
    sample: text(problem['sample']),
    docs: text(problem['docs']),
    // Between single quotes in a shell and in JavaScript.
    url: url.replaceAll("'", '%27'),
    client: text(problem['client']),
  })
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
