import { setTimeout as delay } from 'node:timers/promises'
import { isJsonObject } from '../../../src/engine/json.ts'
import type { Hex } from '../../support/payment.ts'
import type { Secrets } from '../../support/secrets.ts'
import type { Diary, Want } from './diary.ts'
import type { Dice } from './dice.ts'
import type { Money } from './money.ts'

/**
 * How a buyer goes on when an answer does not come:
 *
 * - `faithful`: sends the same payment again, until it is answered or refused
 * - `stock`: the protocol’s own client, asked anew: meets a fresh 402 and signs again
 * - `hasty`: the same, hanging up when it takes too long
 */
export type Manner = 'faithful' | 'stock' | 'hasty'

export const MANNERS: readonly Manner[] = ['faithful', 'stock', 'hasty']

export interface BuyerSettings {
  readonly money: Money
  readonly key: Hex
  /** Of the key. */
  readonly address: string
  readonly manner: Manner
  readonly dice: Dice
  readonly diary: Diary
  readonly secrets: Secrets
  /** Base address of one of the processes. */
  readonly anywhere: () => string
}

const ROUTES = ['work', 'deep', 'note'] as const
/** So many things are wanted by several buyers, or by one several times. */
const COMMON = 0.15
const COMMON_THINGS = 10
const THOUGHT_MS = 2_000

/** Wants one thing after the other, until it is over. */
export async function shop(settings: BuyerSettings, isOver: () => boolean): Promise<void> {
  const { dice, diary } = settings
  while (!isOver()) {
    // Who thinks between purchases is not caught by every kill, and finds a server that others keep busy.
    await delay(dice.between(0, THOUGHT_MS))
    const route = ROUTES[dice.between(0, ROUTES.length)] ?? 'work'
    const n = dice.chance(COMMON) ? dice.between(1, COMMON_THINGS) : COMMON_THINGS + diary.wants.length
    const want: Want = {
      buyer: settings.address,
      route,
      n,
      payments: new Map(),
      story: [`${settings.manner} ${settings.address}`],
      received: undefined,
    }
    diary.wants.push(want)
    await obtain(settings, want, isOver)
  }
}

/**
 * Once the shop is calm, a buyer without an answer shows once more what was signed for it: a buyer whose patience ends
 * while the answer is on its way has not lost it.
 */
export async function askOnceMore(settings: BuyerSettings, want: Want): Promise<void> {
  const { money, anywhere } = settings
  const transport = noting(settings, want)
  for (const header of want.payments.values()) {
    if (want.received !== undefined) return
    const signal = AbortSignal.timeout(LONGEST_REQUEST_MS)
    await transport(urlOf(want, anywhere()), { headers: { [money.header]: header }, signal }).catch(
      () => undefined,
    )
  }
}

function urlOf({ route, n }: Want, base: string): string {
  return `${base}/paid/${route}?n=${n}`
}

/** Longest a buyer goes on trying once nothing is killed any more. */
const PATIENCE_MS = 120_000
const LONGEST_REQUEST_MS = 60_000

/** Tries until the thing is there, or the patience is over. */
async function obtain(settings: BuyerSettings, want: Want, isOver: () => boolean): Promise<void> {
  const { dice } = settings
  const attempt = attempts(settings, want)
  let giveUp = Infinity
  while (want.received === undefined && Date.now() < giveUp) {
    if (giveUp === Infinity && isOver()) giveUp = Date.now() + PATIENCE_MS
    await attempt().catch(() => undefined)
    if (want.received === undefined) await delay(dice.between(100, 600))
  }
}

function attempts(settings: BuyerSettings, want: Want): () => Promise<void> {
  const { money, key, manner, dice, anywhere } = settings
  const transport = noting(settings, want)
  const paying = money.client(key, transport)
  let hurry = 1
  let header: string | undefined
  switch (manner) {
    case 'faithful':
      return async () => {
        const url = urlOf(want, anywhere())
        header ??= await money.sign(url, key, transport)
        const response = await transport(url, { headers: { [money.header]: header } })
        // Whoever is told that nothing was charged may sign again.
        if (response.status === 402) header = undefined
      }
    case 'stock':
      return async () => {
        await paying(urlOf(want, anywhere()), { signal: AbortSignal.timeout(LONGEST_REQUEST_MS) })
      }
    case 'hasty':
      return async () => {
        hurry *= 1.3
        const patience = Math.min(dice.between(50, 600) * hurry, LONGEST_REQUEST_MS)
        await paying(urlOf(want, anywhere()), { signal: AbortSignal.timeout(patience) })
      }
  }
}

/** Carries requests, and writes down what left and what came. */
function noting(settings: BuyerSettings, want: Want): typeof fetch {
  const { money, diary, secrets } = settings
  return async (input, init) => {
    const request = new Request(input, init)
    const header = request.headers.get(money.header)
    if (header !== null && !want.payments.has(money.markOf(header))) {
      want.payments.set(money.markOf(header), header)
      secrets.keepHeader(header)
    }
    const asked = Date.now()
    const tell = (outcome: string): void => {
      const what = header === null ? 'asked' : `paid ${money.markOf(header)}`
      const server = new URL(request.url).port
      want.story.push(`${timeOf(asked)} ${what} at ${server}; ${timeOf(Date.now())} ${outcome}`)
    }
    try {
      const response = await fetch(request)
      diary.statuses.set(response.status, (diary.statuses.get(response.status) ?? 0) + 1)
      if (header === null) tell(String(response.status))
      else tell(await read(settings, want, { response: response.clone(), request, asked }))
      return response
    } catch (fault) {
      diary.cutOff += 1
      tell('cut off')
      throw fault
    }
  }
}

interface Exchange {
  readonly request: Request
  readonly asked: number
  readonly response: Response
}

/** Takes in what came for a payment; resolves to what is to be told of it. */
async function read(
  { money, diary, secrets }: BuyerSettings,
  want: Want,
  { request, asked, response }: Exchange,
): Promise<string> {
  const text = await secrets.hear(response)
  const body: unknown = JSON.parse(text)
  if (!isJsonObject(body)) throw new Error('an answer is no object')
  const payment = response.headers.get('ratecard-payment')
  if (response.status !== 200) return `${response.status} ${JSON.stringify(body['code'])}`
  if (body['n'] !== want.n) {
    diary.wrong += 1
    return '200 for something else'
  }
  const { origin: from } = new URL(request.url)
  const transaction = money.receiptOf(response)
  want.received = { from, asked, at: Date.now(), payment, transaction, run: body['run'] }
  return `200 by ${payment ?? 'no payment'}`
}

function timeOf(at: number): string {
  return new Date(at).toISOString().slice(11, 23)
}
