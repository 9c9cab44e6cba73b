/** A fault to be planted in the source: one text in the place of another. */
export interface Planted {
  /** What is wrong, in a few words. */
  readonly name: string
  /** Below `src/engine`. */
  readonly file: string
  readonly find: string
  readonly replace: string
  /** Options of the simulator: how the purchases are paid among which it is looked for. */
  readonly options: readonly string[]
}

type Text = Omit<Planted, 'options'>

const OF_EXACT: readonly Text[] = [
  {
    name: 'the fence of the signer’s lease is ignored: an old count of nonces is used',
    file: 'chains/evm/nonces.ts',
    find: 'const alone = this.#fence !== undefined && lease.fencingToken - this.#fence <= 1',
    replace: 'const alone = this.#state !== undefined',
  },
  {
    name: 'a payment is taken over without compare-and-set',
    file: 'ledger/lease.ts',
    find: '(await ledger.replace(record, next)) ?',
    replace: '((await ledger.replace(record, next)) || true) ?',
  },
  {
    name: 'a change of a record is not compared with what is stored',
    file: 'ledger/lease.ts',
    find: 'if (!(await this.#replace(this.#stored, record, store))) throw new LeaseLostError(previous.id)',
    replace: 'await this.#replace(this.#stored, record, store)',
  },
  {
    name: 'the transaction is sent before it is recorded',
    file: 'purchase/settlement-flow.ts',
    find: 'await lease.dispatch({ dispatch, ...unstored(), ...(purchase.opened && { runs: 1 }) }, joint)',
    replace:
      'void lease.dispatch({ dispatch, ...unstored(), ...(purchase.opened && { runs: 1 }) }, joint).catch(deps.report)',
  },
  {
    name: 'the transaction is not recorded',
    file: 'purchase/settlement-flow.ts',
    find: 'await lease.dispatch({ dispatch, ...unstored(), ...(purchase.opened && { runs: 1 }) }, joint)',
    replace: 'await Promise.resolve([dispatch, joint])',
  },
  {
    name: 'the receipt is not stored',
    file: 'purchase/settlement-flow.ts',
    find: 'return await lease.settle(receipt)',
    replace: 'return { ...lease.record, receipt }',
  },
  {
    name: 'the answer is not stored before the settlement',
    file: 'purchase/settlement-flow.ts',
    find: '(lease.record.answer === undefined ? work : undefined)',
    replace: 'undefined',
  },
  {
    name: 'a transaction without a block in time counts as failed',
    file: 'x402/exact-evm/own-settler.ts',
    find: 'return (await onchainStatus(context, expected, since, () => false)) ?? UNCONFIRMED',
    replace: 'return (await onchainStatus(context, expected, since, () => false)) ?? SETTLEMENT_FAILED',
  },
  {
    name: 'a node that does not answer counts as a failure',
    file: 'x402/exact-evm/own-settler.ts',
    find: "if (seen.kind !== 'result') return UNCONFIRMED",
    replace: "if (seen.kind !== 'result') return SETTLEMENT_FAILED",
  },
  {
    name: 'a broadcast without an answer counts as not sent',
    file: 'chains/evm/signer.ts',
    find: "      case 'unknown':\n        answer(members, { kind: 'unknown', transaction })",
    replace: "      case 'unknown':\n        answer(members, NOT_TAKEN)",
  },
  {
    name: 'a refusal of bytes that were sent twice counts as not sent',
    file: 'chains/evm/broadcast.ts',
    find: "return out.test(message) ? 'refused' : 'unknown'",
    replace: "return out.test(message) || /nonce too low/.test(message) ? 'refused' : 'unknown'",
  },
  {
    name: 'an authorization counts as over a minute before its end',
    file: 'chains/evm/finality.ts',
    find: 'return Number(timestamp) * 1000 >= validBefore',
    replace: 'return Number(timestamp) * 1000 >= validBefore - 60_000',
  },
  {
    name: 'a payment that was mined between two questions counts as failed',
    file: 'chains/evm/transfer-outcome.ts',
    find: "return (await isUsed()) === false ? { kind: 'void', block } : undefined",
    replace: "return { kind: 'void', block }",
  },
  {
    name: 'any log of a batch counts for each of its payments',
    file: 'x402/exact-evm/own-settler.ts',
    find: 'return succeeded && expected.proof.contains(logs, expected)',
    replace: 'return succeeded && logs.length > 0',
  },
  {
    name: 'a receipt without a transfer counts as settled',
    file: 'x402/exact-evm/own-settler.ts',
    find: 'return succeeded && expected.proof.contains(logs, expected)',
    replace: 'return true',
  },
  {
    name: 'a canceled authorization counts as used',
    file: 'chains/evm/eip3009/authorization-outcome.ts',
    find: "if (log.topics[0] === AUTHORIZATION_CANCELED) return { kind: 'void', block }",
    replace: '',
  },
  {
    name: 'a lease is not renewed',
    file: 'ledger/lease.ts',
    find: 'this.#every(LEASE_MS / 3, () => this.#renew())',
    replace: 'this.#every(LEASE_MS * 30, () => this.#renew())',
  },
  {
    name: 'a lease counts as expired at once',
    file: 'ledger/payment-lifecycle.ts',
    find: 'return leaseUntil > now && leaseUntil <= now + LEASE_MS + CLOCK_TOLERANCE_MS',
    replace: 'return leaseUntil > now + LEASE_MS - 200 && leaseUntil <= now + LEASE_MS + CLOCK_TOLERANCE_MS',
  },
  {
    name: 'an unknown outcome is never looked at again',
    file: 'ledger/payment-lifecycle.ts',
    find: 'return updatedAt + Math.min(backoff(record), pauseUntilExpiry(record, updatedAt) ?? Infinity)',
    replace: 'return undefined',
  },
  {
    name: 'a payment that is being sent is left alone when its process dies',
    file: 'ledger/payment-lifecycle.ts',
    find: "    case 'reserved':\n    case 'sending':\n      return leaseUntil",
    replace: "    case 'sending':\n      return undefined\n    case 'reserved':\n      return leaseUntil",
  },
  {
    name: 'recovery ends what is unknown as failed',
    file: 'purchase/recovery.ts',
    find: "await lease.advance(record.state === 'fulfilled' ? 'fulfilled' : 'unknown')",
    replace: 'await lease.void()',
  },
  {
    name: 'recovery deletes what may have been sent',
    file: 'purchase/recovery.ts',
    find: "    case 'fulfilled':\n    case 'settling':",
    replace: "    case 'settling':\n      return lease.delete()\n    case 'fulfilled':",
  },
  {
    name: 'a lost answer is not looked for: the next payment of its buyer is charged',
    file: 'purchase/purchase.ts',
    find: 'const earlier = undelivered.length === 0 ? NOTHING_LOST : await redeliverAny(purchase, undelivered)',
    replace:
      'const earlier = undelivered.length === -1 ? await redeliverAny(purchase, undelivered) : NOTHING_LOST',
  },
  {
    name: 'a payment that may have been sent does not hold back the next one of its buyer',
    file: 'purchase/redelivery.ts',
    find: "return state === 'fulfilled' ? isLeased(record, now()) : state !== 'voided'",
    replace: 'return false',
  },
  {
    name: 'an earlier payment with an unknown outcome is voided for the next one',
    file: 'purchase/redelivery.ts',
    find: "if (settlement.kind !== 'failed') return conclude(leased, settlement)",
    replace: "if (settlement.kind === 'settled') return conclude(leased, settlement)",
  },
  {
    name: 'an undone block is not noticed',
    file: 'chains/evm/finality.ts',
    find: "if (found.toLowerCase() !== hash.toLowerCase()) return { kind: 'undone' }",
    replace: '',
  },
  {
    name: 'what a reorganisation has undone is not carried out again',
    file: 'purchase/follow-blocks.ts',
    find: 'await conclude(deps, protocol, lease, settlement)',
    replace: 'await lease.void()',
  },
  {
    name: 'a failed transaction is forgotten, although its block may be undone',
    file: 'ledger/payment-lifecycle.ts',
    find: '    ...firstLook(record, failedIn, now),',
    replace: '',
  },
  {
    name: 'a payment that is carried out after its buyer was told otherwise is not owed back',
    file: 'purchase/recovery.ts',
    find: 'if (wasDenied(record)) await oweBack(deps, lease)',
    replace: '',
  },
  {
    name: 'nonces that the node has taken are not counted',
    file: 'chains/evm/nonces.ts',
    find: 'if (this.#state !== undefined) this.#state = markTaken(this.#state, nonces)',
    replace: 'if (this.#state !== undefined) this.#state = markTaken(this.#state, nonces.slice(1))',
  },
  {
    name: 'a nonce is left out',
    file: 'chains/evm/nonces.ts',
    find: 'for (let nonce = next; nonces.length < amount; nonce += 1)',
    replace: 'for (let nonce = next + (amount > 2 ? 1 : 0); nonces.length < amount; nonce += 1)',
  },
  {
    name: 'a batch may be sent again after its buyers were told "not charged"',
    file: 'chains/evm/kept-batch.ts',
    find: 'if (members.length === 1) return true',
    replace: 'if (members.length > 0) return true',
  },
  {
    name: 'the record of one payment of a batch is not stored',
    file: 'ledger/joint-commit.ts',
    find: 'if (!(await this.#ledger.commit(this.#changes))) throw new CommitAbandonedError()',
    replace: 'if (!(await this.#ledger.commit(this.#changes.slice(1)))) throw new CommitAbandonedError()',
  },
  {
    name: 'a reservation of another request is taken',
    file: 'ledger/lease.ts',
    find: "if (!isReusable(standing, now())) return { kind: 'taken', record: standing }",
    replace: "if (standing.receipt !== undefined) return { kind: 'taken', record: standing }",
  },
  {
    name: 'one transaction of several gets the outcomes of all',
    file: 'chains/evm/signer.ts',
    find: 'await this.#conclude(each, outcome)',
    replace: 'await this.#conclude(signed[0] ?? each, outcome)',
  },
  {
    name: 'what has waited too long for the batch before it is dropped',
    file: 'chains/evm/signer.ts',
    find: 'for (const { price: _price, ...each } of all) this.#enqueue(each)',
    replace: '',
  },
  {
    name: 'a recorded batch is not broadcast when others wait',
    file: 'chains/evm/signer.ts',
    find: 'const sending = this.#broadcast(signed, fence)',
    replace: 'const sending = (this.#queue.length > 0 ? Promise.resolve() : this.#broadcast(signed, fence))',
  },
  {
    name: 'a payment whose check was refused is sent with the others',
    file: 'chains/evm/batch-check.ts',
    find: "const ready = alone.filter((_, place) => checked[place] === 'passed')",
    replace: 'const ready = checked.length > 0 ? alone : []',
  },
]

const OF_UPTO: readonly Text[] = [
  {
    name: 'the ceiling of a permit is settled, and not the amount',
    file: 'x402/upto-evm/own-permits.ts',
    find: 'settlePermit(await own.context(), signed, amount, journal)',
    replace: 'settlePermit(await own.context(), signed, BigInt(signed.permit.amount), journal)',
  },
  {
    name: 'the price of metered work is not stored with its answer',
    file: 'purchase/settlement-flow.ts',
    find: 'work = { answer, ...(metered && meteredCharge(payment, metered)) }',
    replace: 'work = { answer, ...(metered && {}) }',
  },
  {
    name: 'work that costs nothing is sent to the chain',
    file: 'purchase/free-work.ts',
    find: "if (amount !== '0' || answer === undefined || dispatch !== undefined) return undefined",
    replace: "if (amount !== '' || answer === undefined || dispatch !== undefined) return undefined",
  },
  {
    name: 'recovery looks for the ceiling of a permit on the chain',
    file: 'x402/upto-evm/permit-order.ts',
    find: '{ key, payee, amount }: PaymentRecord',
    replace: '{ key, payee, authorizedAmount: amount }: PaymentRecord',
  },
  {
    name: 'a permit counts as over a minute before its end',
    file: 'x402/upto-evm/permit-order.ts',
    find: 'const end = BigInt(deadline) + 1n',
    replace: 'const end = BigInt(deadline) - 60n',
  },
  {
    name: 'a permit is sent by an account that it does not name',
    file: 'x402/exact-evm/own-settler.ts',
    find: '...(sender && { sender }),',
    replace: '',
  },
  {
    name: 'any transfer of a payer is taken for that of its permit',
    file: 'chains/evm/permit2/permit-outcome.ts',
    find: 'if (settles(sent.result, expected)) return log',
    replace: 'return log',
  },
]

const OF_CHANNELS: readonly Text[] = [
  {
    name: 'metered work through a channel costs its ceiling',
    file: 'x402/batch-settlement-evm/channel-payment.ts',
    find: 'amountFor: (price) => atMost(amount, toAtomic(price, network.token.decimals))',
    replace: 'amountFor: () => amount',
  },
  {
    name: 'what a channel was charged is not stored with the answer',
    file: 'ledger/lease.ts',
    find: 'if (await this.#ledger.commit([change], [state])) return true',
    replace: 'if (await this.#ledger.commit([change], [])) return true',
  },
  {
    name: 'a channel is charged the ceiling of its voucher',
    file: 'x402/batch-settlement-evm/voucher-charge.ts',
    find: 'const total = before + charged',
    replace: 'const total = voucher.ceiling',
  },
  {
    name: 'a voucher that is lower than what was charged is taken',
    file: 'x402/batch-settlement-evm/voucher-fit.ts',
    find: 'if (charged + amount === ceiling) return undefined',
    replace: 'if (charged + amount >= ceiling) return undefined',
  },
  {
    name: 'a channel may be charged more than it holds',
    file: 'x402/batch-settlement-evm/voucher-fit.ts',
    find: 'const held = usable(mirror) - reserved(account)',
    replace: 'const held = ceiling + reserved(account) + usable(mirror)',
  },
  {
    name: 'withdrawals from channels are not seen',
    file: 'x402/batch-settlement-evm/channel-watch.ts',
    find: 'if (id === undefined || changed.has(id)) continue',
    replace: 'if (id === undefined || changed.size === 0) continue',
  },
  {
    name: 'a claim that a reorganization has undone counts as final',
    file: 'x402/batch-settlement-evm/claims.ts',
    find: "if (kind !== 'undone') return { kind: 'as before' }",
    replace: "if (kind !== undefined) return { kind: kind === 'undone' ? 'over' : 'as before' }",
  },
  {
    name: 'what a refund gives back can be charged meanwhile',
    file: 'x402/batch-settlement-evm/channel-account.ts',
    find: 'return refund === undefined || refund.result !== undefined ? 0n : BigInt(refund.amount)',
    replace: 'return refund === undefined || refund.result !== undefined ? 0n : BigInt(refund.amount) * 0n',
  },
]

const OF_SOLANA: readonly Text[] = [
  {
    name: 'a transaction on Solana is sent before it is recorded',
    file: 'x402/exact-svm/own-settler.ts',
    find: "  await journal.record({ kind: 'payer', hash, raw: writeOrder(order) })\n",
    replace:
      "  await chain.send(order.transaction)\n  await journal.record({ kind: 'payer', hash, raw: writeOrder(order) })\n",
  },
  {
    name: 'a block that a fork may undo counts as settled',
    file: 'chains/svm/svm-chain.ts',
    find: "if (confirmationStatus !== 'confirmed' && confirmationStatus !== 'finalized') return { kind: 'processed' }",
    replace: '',
  },
  {
    name: 'a transaction that the node does not know has failed, although a block may still contain it',
    file: 'x402/exact-svm/own-settler.ts',
    find: "if (seen.result.kind === 'none' && isOver) return endOf(context, record, order)",
    replace: "if (seen.result.kind === 'none') return endOf(context, record, order)",
  },
  {
    name: 'a transaction counts as over half a minute before its last height',
    file: 'x402/exact-svm/own-settler.ts',
    find: 'height.result > order.lastHeight',
    replace: 'height.result > order.lastHeight - 110n',
  },
  {
    name: 'a transaction on Solana is sent without a record',
    file: 'x402/exact-svm/own-settler.ts',
    find: "await journal.record({ kind: 'payer', hash, raw: writeOrder(order) })",
    replace: '',
  },
]

const OF_FACILITATORS: readonly Text[] = [
  {
    name: 'a refusal of a facilitator counts, whatever the chain shows',
    file: 'x402/exact-evm/facilitated-transfer.ts',
    find: "if (verdict.kind === 'refused' && (await transfer.isRefusedOnChain(reader)))",
    replace: "if (verdict.kind === 'refused')",
  },
  {
    name: 'what a facilitator says counts, whatever the chain shows',
    file: 'x402/exact-evm/facilitated-transfer.ts',
    find: '  return reader === undefined\n    ? believe(context, transfer, by, body, { answer, verdict })\n    : confirm(context, reader, transfer, { since, verdict })',
    replace:
      '  return reader === undefined || by.url !== undefined\n    ? believe(context, transfer, by, body, { answer, verdict })\n    : confirm(context, reader, transfer, { since, verdict })',
  },
  {
    name: 'a request to a facilitator is not recorded',
    file: 'x402/facilitators/ask-facilitators.ts',
    find: "    await journal.record({ kind: 'facilitator', url: by.url, request: body })\n",
    replace: '',
  },
  {
    name: 'a facilitator that has not answered counts as not reached',
    file: 'x402/facilitators/ask-facilitators.ts',
    find: "if (answer.kind !== 'unreached') return { kind: 'asked', by, body, answer }",
    replace: "if (answer.kind === 'answer') return { kind: 'asked', by, body, answer }",
  },
  {
    name: 'a payment at a facilitator counts as over a minute before its end',
    file: 'x402/exact-evm/facilitator-settler.ts',
    find: 'resolveByFacilitator(context, expected, { dispatch, end, since }, REASONS)',
    replace: 'resolveByFacilitator(context, expected, { dispatch, end: end - 60_000, since }, REASONS)',
  },
]

/** Each has to be found by the simulator; each text stands in its file once. */
export const PLANTED: readonly Planted[] = [
  ...OF_EXACT.map((planted) => ({ ...planted, options: ['--ways', 'exact'] })),
  ...OF_SOLANA.map((planted) => ({ ...planted, options: ['--ways', 'exact-svm'] })),
  ...OF_UPTO.map((planted) => ({ ...planted, options: ['--ways', 'upto'] })),
  ...OF_CHANNELS.map((planted) => ({ ...planted, options: ['--ways', 'batch-settlement'] })),
  ...OF_FACILITATORS.map((planted) => ({ ...planted, options: ['--facilitators'] })),
]
