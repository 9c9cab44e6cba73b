import { createHash } from 'node:crypto'
import type { Catalog, Route } from '../catalog/catalog.ts'
import { isJsonObject, type Json, type JsonObject } from '../base/json.ts'
import { formatDecimal } from '../base/money.ts'
import { findAnyNetwork, findAsset, findNetwork, findSvmNetwork, transactionPage } from '../base/networks.ts'
import { sentence } from '../base/words.ts'
import type { Facts } from './registry.ts'
import { exampleUrl, javascriptFor, quotable } from './example-programs.ts'
import { dollarsOf, viewRoute } from './operation-view.ts'
import { frame, policyOf, readPage, styleSheetOf } from './page-frame.ts'
import type { TemplateContext } from './template.ts'

interface PaymentPage {
  readonly catalog: Catalog
  readonly facts: Facts
  readonly route: Route
  /** The requested URL with its query. */
  readonly url: string
  /** Body of the 402, which the page shows. */
  readonly problem: JsonObject
}

const print = readPage('payment-required.html.hbs')

interface RenderedPage {
  readonly html: string
  /** Content-Security-Policy: the inlined style and files of our origin; no frame around the page. */
  readonly policy: string
}

/** The 402 of a paid path for people who open it in a browser. */
export function renderPaymentPage({ catalog, facts, route, url, problem }: PaymentPage): RenderedPage {
  const { price } = problem
  const { method } = route.operation
  const title = text(problem['title'])
  const view = viewRoute(catalog, facts, route)
  const offers = problem['would_fail'] !== undefined ? [] : offersOf(problem['accepts'], facts)
  const style = styleSheetOf(catalog)
  const html = print({
    page: frame(catalog, facts, {
      title: `${title}: ${view.title}`,
      description: view.promise,
      url: '',
      style,
    }),
    view,
    title,
    method,
    path: route.path,
    price: isJsonObject(price) ? dueOf(price) : '',
    parts: isJsonObject(price) ? partsOf(price['parts']) : [],
    rule: isJsonObject(price) ? text(price['rule']) : '',
    detail: sentence(upperFirst(text(problem['detail']))),
    networks: networks(problem['accepts']),
    offers,
    isMetered: offers.some(({ isMost }) => isMost),
    // A repeated request would have no body, so the page of the route embeds this part of the page.
    repeatable: method === 'GET',
    wallets: [...(facts.sandbox ? [{ title: 'the sandbox wallet', path: SANDBOX_WALLET }] : []), OWN_WALLET],
    wouldFail: wouldFail(problem['would_fail']),
    sample: sampleOf(catalog, facts, route) ?? text(problem['sample']),
    docs: text(problem['docs']),
    url: quotable(url),
    client: problem['accepts'] === undefined ? '' : javascriptFor(route, quotable(url), 'body'),
  })
  const hash = createHash('sha256').update(style).digest('base64')
  return { html, policy: policyOf(`'sha256-${hash}'`) }
}

/** What this call costs; of metered work the most. */
function dueOf({ amount, max }: JsonObject): string {
  return typeof amount === 'string' ? dollarsOf(amount) : `at most ${dollarsOf(text(max))}`
}

/** The parts of a computed price. */
function partsOf(parts: Json | undefined): TemplateContext[] {
  return (Array.isArray(parts) ? parts : []).flatMap((each: Json) => {
    if (!isJsonObject(each)) return []
    const { part, value, units, amount } = each
    const choice = typeof value === 'string' ? `: ${value}` : ''
    const counted = typeof units === 'number' ? `, ${units} ${units === 1 ? 'unit' : 'units'}` : ''
    return [{ part: `${text(part)}${choice}${counted}`, amount: dollarsOf(text(amount)) }]
  })
}

const OWN_WALLET = { title: 'your wallet', path: '' }

/** Path at which a sandbox signs for visitors without a wallet, with play money. */
export const SANDBOX_WALLET = '/sandbox/wallet'

/** The offers of a 402 that a browser wallet can sign, with what it needs to know of the network. */
function offersOf(accepts: Json | undefined, { sandbox }: Facts): TemplateContext[] {
  const offers = (Array.isArray(accepts) ? accepts : []).filter(isJsonObject)
  const isExact = (id: Json | undefined): boolean =>
    offers.some(({ scheme, network }) => scheme === 'exact' && network === id)
  return offers.flatMap((offer) => {
    const { scheme } = offer
    // One payment a network: a transfer of the price where there is one, else of at most the ceiling.
    if (scheme !== 'exact' && (scheme !== 'upto' || isExact(offer['network']))) return []
    const [id, amount, asset] = [text(offer['network']), text(offer['amount']), text(offer['asset'])]
    const network = findAnyNetwork(id)
    const token = findAsset(id, asset)
    if (network === undefined || token === undefined) return []
    const { title, coin, rpcUrl, explorer } = network
    return [
      {
        network: id,
        scheme,
        isMost: scheme === 'upto',
        amount,
        asset,
        payee: text(offer['payTo']),
        due: `${formatDecimal(BigInt(amount), token.decimals)} ${token.symbol}`,
        name: title,
        decimals: String(token.decimals),
        chain: chainOf(id),
        coin,
        rpc: rpcUrl,
        // The explorer does not know the chain of a sandbox.
        explorer: sandbox ? '' : explorer,
        page: sandbox ? '' : transactionPage(network, 'TRANSACTION'),
      },
    ]
  })
}

/** The name that wallets have for a network. */
function chainOf(id: string): string {
  const svm = findSvmNetwork(id)
  if (svm !== undefined) return svm.testnet ? 'solana:devnet' : 'solana:mainnet'
  return `0x${findNetwork(id)?.chainId.toString(16)}`
}

/** A sample that answers without arguments; undefined when its bare path does. */
function sampleOf(catalog: Catalog, facts: Facts, route: Route): string | undefined {
  const preview = catalog.routes.find(
    ({ kind, operation }) => kind === 'sample' && operation === route.operation,
  )
  const needs = preview?.parameters.some(({ required }) => required) ?? false
  return preview !== undefined && needs ? exampleUrl(facts.baseUrl, preview) : undefined
}

function networks(accepts: Json | undefined): string {
  const ids = (Array.isArray(accepts) ? accepts : []).flatMap((offer: Json) => {
    const id = isJsonObject(offer) ? text(offer['network']) : ''
    return id === '' ? [] : [id]
  })
  const titles = [...new Set(ids)].map((id) => findAnyNetwork(id)?.title ?? id)
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
