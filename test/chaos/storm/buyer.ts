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
    const want = {
      url: (base: string) => `${base}/paid/${route}?n=${n}`,
      n,
      marks: new Set<string>(),
      fetched: false,
    }
    diary.wants.push(want)
    await obtain(settings, want, isOver)
  }
}

/** Longest a buyer goes on trying once nothing is killed any more. */
const PATIENCE_MS = 120_000
const LONGEST_REQUEST_MS = 60_000

/** Tries until the thing is there, or the patience is over. */
async function obtain(settings: BuyerSettings, want: Want, isOver: () => boolean): Promise<void> {
  const { dice } = settings
  const attempt = attempts(settings, want)
  let giveUp = Infinity
  while (!want.fetched && Date.now() < giveUp) {
    if (giveUp === Infinity && isOver()) giveUp = Date.now() + PATIENCE_MS
    await attempt().catch(() => undefined)
    if (!want.fetched) await delay(dice.between(100, 600))
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
        const url = want.url(anywhere())
        header ??= await money.sign(url, key, transport)
        const response = await transport(url, { headers: { [money.header]: header } })
        // Whoever is told that nothing was charged may sign again.
        if (response.status === 402) header = undefined
      }
    case 'stock':
      return async () => {
        await paying(want.url(anywhere()), { signal: AbortSignal.timeout(LONGEST_REQUEST_MS) })
      }
    case 'hasty':
      return async () => {
        hurry *= 1.3
        const patience = Math.min(dice.between(50, 600) * hurry, LONGEST_REQUEST_MS)
        await paying(want.url(anywhere()), { signal: AbortSignal.timeout(patience) })
      }
  }
}

/** Carries requests, and writes down what left and what came. */
function noting({ money, diary, secrets }: BuyerSettings, want: Want): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init)
    const header = request.headers.get(money.header)
    if (header !== null && !want.marks.has(money.markOf(header))) {
      want.marks.add(money.markOf(header))
      secrets.keepHeader(header)
    }
    try {
      const response = await fetch(request)
      diary.statuses.set(response.status, (diary.statuses.get(response.status) ?? 0) + 1)
      if (header !== null) await read(response.clone(), diary, want, secrets)
      return response
    } catch (fault) {
      diary.cutOff += 1
      throw fault
    }
  }
}

async function read(response: Response, diary: Diary, want: Want, secrets: Secrets): Promise<void> {
  const text = await secrets.hear(response)
  if (response.status !== 200) return
  const body: unknown = JSON.parse(text)
  if (isJsonObject(body) && body['n'] === want.n) want.fetched = true
  else diary.wrong += 1
}
