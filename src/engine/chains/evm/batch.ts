import type { Payer, Ready, SendResult, SignerBusy, Submission, Waiting } from './transaction.ts'
import type { Multicall } from './multicall.ts'
import { checkTime, MULTICALL3, encodeBatch, gasOfBatch } from './multicall.ts'
/** Most gas of a member without code that moves nothing, including its part of the batch. */
const GAS_REVERTED = 50_000n
/** Most payers without a settled payment that share a transaction. */
const MOST_NEW = 8

/** A transaction with one request. */
export function single(request: Ready): Submission {
  return { members: [request], call: request.request, price: request.price }
}

/** One transaction for several requests; a single request is sent alone. */
export function batchOf(members: readonly Ready[]): readonly Submission[] {
  const [first, ...others] = members
  if (first === undefined) return []
  if (others.length === 0) return [single(first)]
  const requests = members.map(({ request }) => request)
  const call = {
    to: MULTICALL3,
    data: encodeBatch(requests),
    gas: gasOfBatch(members.length),
    maxFeePerGas: requests.reduce(
      (least, { maxFeePerGas }) => (maxFeePerGas < least ? maxFeePerGas : least),
      first.request.maxFeePerGas,
    ),
    // Requests that expire earlier fail by themselves in a later block.
    expires: Math.max(...requests.map(({ expires }) => expires)),
  }
  return [{ members, call, price: first.price }]
}

/**
 * Divides requests into transactions: they share one if their simulation in one call succeeds and their payers'
 * accounts have no code, which could use up the gas of all. Each other request is sent alone, with its own gas
 * limit.
 */
export async function group(
  ready: readonly Ready[],
  multicall: Multicall,
  from: Ready['request']['to'],
): Promise<{ readonly together: readonly Ready[]; readonly alone: readonly Ready[] }> {
  const candidates = ready.filter(({ request }) => request.payer !== undefined)
  const [first] = candidates
  if (first === undefined || candidates.length === 1 || !multicall.isAvailable)
    return { together: [], alone: ready }
  const requests = candidates.map(({ request }) => request)
  const payers = requests.flatMap(({ payer }) => payer?.address ?? [])
  const timeout = checkTime(candidates.length)
  const [passed, withCode] = await Promise.all([
    multicall.simulate(requests, { from, ...first.price }, timeout),
    multicall.withCode(payers, timeout),
  ])
  if (passed === undefined || withCode === undefined) return { together: [], alone: ready }
  const together = candidates.filter(
    ({ request: { payer } }, place) =>
      passed[place] === true && payer !== undefined && !withCode.has(payer.address),
  )
  if (together.length < 2) return { together: [], alone: ready }
  const shared = new Set(together)
  return { together, alone: ready.filter((each) => !shared.has(each)) }
}

/** Requests that share a transaction. Few new payers share one, since one of them can burn the gas of all. */
export function batchesOf(together: readonly Ready[]): readonly (readonly Ready[])[] {
  const of = (standing: Payer['standing']): readonly Ready[] =>
    together.filter(({ request }) => request.payer?.standing === standing)
  const fresh = of('new')
  const few = Array.from({ length: Math.ceil(fresh.length / MOST_NEW) }, (_, place) =>
    fresh.slice(place * MOST_NEW, (place + 1) * MOST_NEW),
  )
  return [of('known'), ...few].filter(({ length }) => length > 0)
}

/**
 * Gas that one request can lose in a transaction with this number of members. A new payer may put code on the account
 * between the simulation and the block, and burn its part of the limit; an account that has settled before is counted
 * as one that reverts.
 */
export function gasAtRisk({ request }: Ready, members: number): bigint {
  if (members === 1) return request.gas
  return request.payer?.standing === 'known' ? GAS_REVERTED : gasOfBatch(members) / BigInt(members)
}

/** Resolves every request with the same result. */
export function answer(waiting: readonly Waiting[], result: SendResult | SignerBusy): readonly [] {
  for (const { resolve } of waiting) resolve(result)
  return []
}
