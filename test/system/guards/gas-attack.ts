import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { networkNamed } from '../../support/shipped-catalog.ts'
import {
  addressOf,
  challengeOf,
  randomKey,
  send,
  sign,
  type Challenge,
  type Hex,
  type SignedPayment,
} from '../../support/payment.ts'
import { openChainControl } from '../../support/settlement-context.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { BY_AUTHORIZATION } from '../../../src/engine/chains/evm/transfer-proof.ts'

/*
 * Many wallets pay, and make their settlements fail in the block that contains them: they withdraw the authorization, or
 * burn the gas with code on the account, while honest buyers pay for the first time. `npm run attack` runs the full size.
 */
const {
  wallets: WALLETS,
  payments: PAYMENTS,
  buyers: BUYERS,
} = process.env.ATTACK === 'full'
  ? { wallets: 60, payments: 8, buyers: 20 }
  : { wallets: 12, payments: 3, buyers: 4 }
const BLOCK_MS = 500
const BUYERS_COME_WITHIN_MS = 10_000
const CALLS_OF_A_BUYER = 3

/** JUMPDEST, PUSH1 0, JUMP: uses up all gas it is given. */
const BURNING = '0x5b600056'
/** Accepts every signature (ERC-1271). */
const ACCEPTING = '0x631626ba7e60e01b60005260206000f3'
/** Gas of a batch without failures, and of each payment in it. */
const USUAL = { batch: 30_000n, member: 41_000n }
/** Selectors of `transferWithAuthorization`, with the signature in parts and in one. */
const TRANSFERS = /e3ee160e|cf092995/g

interface Attacker {
  readonly key: Hex
  readonly account: Hex
}

type Attack = 'withdraw' | 'take code' | 'contract'

const { maxGasLoss } = networkNamed('base').limits

for (const [what, attackOf] of [
  ['withdraw their payments', () => 'withdraw'],
  ['put code on their accounts', () => 'take code'],
  ['are contracts that change their mind', () => 'contract'],
  ['do all of it', (n) => (['withdraw', 'take code', 'contract'] as const)[n % 3] ?? 'withdraw'],
] as readonly (readonly [string, (n: number) => Attack])[])
  t.test(
    `loses no more gas than the budget when ${WALLETS} wallets ${what}, beside new buyers`,
    async (t) => {
      const shop = await openShop()
      t.teardown(() => shop.close())
      const url = `${shop.url}/paid/work`
      const challenge = await challengeOf(url)
      const attackers = Array.from({ length: WALLETS }, (_, n) => ({ ...newAttacker(), attack: attackOf(n) }))
      for (const { account, attack } of attackers) {
        await shop.chain.mint(account, 10_000n * BigInt(PAYMENTS))
        if (attack === 'contract') await shop.chain.setCode(account, ACCEPTING)
      }
      const honest: Hex[] = []
      while (honest.length < BUYERS) honest.push(await shop.wallet())
      const mining = startMining(shop)
      t.teardown(() => mining.stop())
      const attacking = attackers.flatMap(({ key, account, attack }) =>
        Array.from({ length: PAYMENTS }, async () => {
          const payment = await sign(challenge, attack === 'contract' ? randomKey() : key, { from: account })
          mining.spoil(payment, key, attack)
          return (await send(url, payment.header).catch(() => undefined))?.status
        }),
      )
      const answers = await Promise.all(
        honest.map(async (key, n) => {
          await delay((BUYERS_COME_WITHIN_MS / BUYERS) * n)
          const own: boolean[] = []
          for (let call = 0; call < CALLS_OF_A_BUYER; call += 1) own.push(await buy(url, challenge, key))
          return own
        }),
      )
      const statuses = await Promise.all(attacking)
      await mining.stop()
      const lost = await lostGas(shop)
      const answered = answers.flat().filter(Boolean).length
      t.comment(
        `lost ${lost} of ${maxGasLoss} wei (${Number((lost * 1000n) / maxGasLoss) / 1000}); ${answered} of ${answers.flat().length} answers; attackers: ${summary(statuses)}`,
      )
      t.ok(lost <= (maxGasLoss * 5n) / 4n, 'within the budget')
      t.ok(answered >= answers.flat().length * 0.95, 'new buyers are answered')
    },
  )

function newAttacker(): Attacker {
  const key = randomKey()
  return { key, account: addressOf(key) }
}

/** Sends one payment until it is answered or refused for good. */
async function buy(url: string, challenge: Challenge, key: Hex): Promise<boolean> {
  const { header } = await sign(challenge, key)
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const answer = await send(url, header)
    await answer.body?.cancel()
    if (answer.status === 200) return true
    if (answer.status !== 503) return false
    await delay(1_000)
  }
  return false
}

/** Mines a block now and then, after it has spoilt what attackers have in the pool. */
function startMining(shop: Shop) {
  const control = openChainControl(shop.chain)
  const spoilers = new Map<string, () => Promise<unknown>>()
  let isOn = true
  const pending = async (): Promise<string> => {
    const { transactions } = await control.client.getBlock({ blockTag: 'pending', includeTransactions: true })
    return transactions.map(({ input }) => input).join('')
  }
  const mining = (async () => {
    await control.automine('off')
    while (isOn) {
      await delay(BLOCK_MS)
      const inputs = await pending()
      for (const [nonce, spoil] of spoilers)
        if (inputs.includes(nonce)) {
          spoilers.delete(nonce)
          await spoil()
        }
      await control.mine()
    }
    await control.automine('on')
  })()
  return {
    spoil: ({ authorization, signature }: SignedPayment, key: Hex, attack: Attack): void => {
      const { from, to, value, validAfter, validBefore, nonce } = authorization
      const text = {
        from,
        to,
        value: `${value}`,
        validAfter: `${validAfter}`,
        validBefore: `${validBefore}`,
        nonce,
      }
      const expected = { token: shop.chain.asset, from, to, value, nonce, proof: BY_AUTHORIZATION } as const
      spoilers.set(nonce.slice(2), async () =>
        attack === 'withdraw'
          ? control.cancel({ key, expected, authorization: text, signature })
          : shop.chain.setCode(from, BURNING),
      )
    },
    stop: async (): Promise<void> => {
      isOn = false
      await mining
    },
  }
}

/** Wei that the settling account has paid for what moved nothing, from the receipts of its transactions. */
async function lostGas(shop: Shop): Promise<bigint> {
  const { client } = openChainControl(shop.chain)
  const settler = shop.signer.toLowerCase()
  let lost = 0n
  for (let number = await client.getBlockNumber(); number > 0n; number -= 1n) {
    const { transactions } = await client.getBlock({ blockNumber: number, includeTransactions: true })
    for (const { hash, from, input } of transactions) {
      if (from.toLowerCase() !== settler) continue
      const { gasUsed, effectiveGasPrice, logs } = await client.getTransactionReceipt({ hash })
      // The token logs the use of the authorization, and the transfer.
      const moved = logs.length / 2
      if (moved === Array.from(input.matchAll(TRANSFERS)).length) continue
      const usual = moved === 0 ? 0n : USUAL.batch + USUAL.member * BigInt(moved)
      if (gasUsed > usual) lost += (gasUsed - usual) * effectiveGasPrice
    }
  }
  return lost
}

function summary(statuses: readonly (number | undefined)[]): string {
  const counts = new Map<number | undefined, number>()
  for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1)
  return Array.from(counts, ([status, count]) => `${count} × ${status}`).join(', ')
}
