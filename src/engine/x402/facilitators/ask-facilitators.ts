import type { ErrorCode, Refusal } from '../../base/errors.ts'
import type { Journal } from '../../payment/settlement.ts'
import type {
  Facilitator,
  FacilitatorAnswer,
  FacilitatorRequest,
  SettleResponse,
} from './facilitator-client.ts'
import type { ListingReports } from './listing-reports.ts'

/** Those who verify and settle payments, in order of preference. */
export interface Facilitators {
  readonly facilitators: readonly Facilitator[]
  readonly listings: Pick<ListingReports, 'note'>
}

/** The refusal by POST /verify as the buyer sees it; undefined when another facilitator may accept the payment. */
type ReadRefusal = (reason: string | undefined) => ErrorCode | undefined

export type Verified =
  | { readonly kind: 'verified'; readonly by: Facilitator }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** What became of a request that a facilitator may have received. */
export type SettleAnswer = Exclude<FacilitatorAnswer<SettleResponse>, { readonly kind: 'unreached' }>

export interface Asked {
  readonly kind: 'asked'
  readonly by: Facilitator
  readonly body: string
  readonly answer: SettleAnswer
}

type AskedToSettle =
  | Asked
  /** No facilitator has received the request. */
  | { readonly kind: 'unsent'; readonly refusal: Refusal }

export const NO_FACILITATOR: Refusal = {
  code: 'chain_unavailable',
  detail: 'nobody who settles payments on this network can be reached now; nothing was charged',
}

/** Asks one facilitator after the other until one knows the answer. */
export async function askToVerify(
  facilitators: readonly Facilitator[],
  request: FacilitatorRequest,
  refusalOf: ReadRefusal,
): Promise<Verified> {
  for (const facilitator of facilitators) {
    const answer = await facilitator.verify(facilitator.bodyOf(request))
    if (answer.kind !== 'answer') continue
    const { isValid, invalidReason } = answer.value
    if (isValid) return { kind: 'verified', by: facilitator }
    const code = refusalOf(invalidReason)
    if (code !== undefined)
      return { kind: 'refused', refusal: { code, detail: 'the facilitator would not settle this payment' } }
  }
  return { kind: 'refused', refusal: NO_FACILITATOR }
}

/** A payment to settle. */
interface ToSettle {
  /** `operation`: what a facilitator may list; undefined when none is named to it. */
  readonly request: FacilitatorRequest & { readonly operation: string | undefined }
  readonly first: Verified
  readonly journal: Journal
  readonly refusalOf: ReadRefusal
}

/**
 * Has the facilitator settle that has verified the payment; another one is asked only while the first has seen nothing of
 * the settlement, which `unreached` alone says: no connection, or none with TLS. Gateways and facilitators repeat requests,
 * and answer with the outcome of the last attempt, whatever became of the first. Each request is recorded before it is sent.
 */
export async function askToSettle(
  { facilitators, listings }: Facilitators,
  { request, first, journal, refusalOf }: ToSettle,
): Promise<AskedToSettle> {
  let verified = first
  let others = facilitators
  while (verified.kind === 'verified') {
    const { by } = verified
    const body = by.bodyOf(request)
    await journal.record({ kind: 'facilitator', url: by.url, request: body })
    const answer = await by.settle(body)
    noteListing(listings, by, request.operation, answer)
    if (answer.kind !== 'unreached') return { kind: 'asked', by, body, answer }
    others = others.filter((facilitator) => facilitator !== by)
    verified = await askToVerify(others, request, refusalOf)
  }
  return { kind: 'unsent', refusal: verified.refusal }
}

/** Records the report on the listing; the settlement does not wait for it. */
function noteListing(
  listings: Facilitators['listings'],
  { url }: Facilitator,
  operation: string | undefined,
  answer: FacilitatorAnswer<SettleResponse>,
): void {
  const listing = answer.kind === 'answer' ? answer.value.listing : undefined
  if (listing === undefined || operation === undefined) return
  void listings.note({ ...listing, facilitator: new URL(url).host, operation })
}
