import { setTimeout as pause } from 'node:timers/promises'
import type { Context } from '../../../src/engine/handler.ts'
import type { Fault } from '../../../src/service/stand-ins/fault.ts'
import { startStandIns, type StandIns } from '../../../src/service/stand-ins/stand-ins.ts'
import { Gamestore } from '../../../src/service/sources/gamestore.ts'
import { MetricsBySource } from '../../../src/service/sources/source-metrics.ts'
import { SteamSpy } from '../../../src/service/sources/steamspy.ts'
import type { Runtime } from '../../../src/service/sources/source-runtime.ts'
import { fixedContext } from '../handler-context.ts'
import { Igdb } from '../../../src/service/sources/igdb.ts'
import { Twitch } from '../../../src/service/sources/twitch.ts'
import {
  STAND_IN_CREDENTIALS,
  TwitchAccess,
  type Credentials,
} from '../../../src/service/sources/twitch/access-token.ts'

/** The real runtime with short waits between attempts. */
export const WORLD: Runtime = {
  fetch: (url, options) => fetch(url, options),
  now: () => new Date(),
  sleep: (ms, signal) => pause(Math.min(ms, 5), undefined, { signal }),
  random: () => 0.5,
}

export function context(signal: AbortSignal = new AbortController().signal): Context {
  return fixedContext({ signal, now: WORLD.now })
}

interface Teardown {
  teardown(work: () => Promise<void>): void
}

/** The base address of stand-ins that stop with the test. */
export async function standIns(t: Teardown, faults: Readonly<Record<string, Fault>> = {}): Promise<string> {
  const { url, stop } = await startStandIns({ faults })
  t.teardown(stop)
  return url
}

export function storeAt(
  url: string,
  runtime: Runtime,
  timeoutMs = 5000,
  records = new MetricsBySource(runtime.now),
): Gamestore {
  return new Gamestore(
    {
      source: { name: 'Sandbox stand-in for the game store' },
      storeUrl: `${url}/steam-store`,
      apiUrl: `${url}/steam-api`,
      timeoutMs,
    },
    runtime,
    records,
  )
}

export function steamSpyAt(url: string, runtime: Runtime, timeoutMs = 5000): SteamSpy {
  const source = { name: 'Sandbox stand-in for SteamSpy' }
  return new SteamSpy(
    { source, baseUrl: `${url}/steamspy`, timeoutMs },
    runtime,
    new MetricsBySource(runtime.now),
  )
}

/** A world that notes the path of every call it lets through. */
export function watched(runtime: Runtime): { readonly runtime: Runtime; readonly asked: string[] } {
  const asked: string[] = []
  const fetch: Runtime['fetch'] = (url, options) => {
    asked.push(url.pathname)
    return runtime.fetch(url, options)
  }
  return { runtime: { ...runtime, fetch }, asked }
}

export interface TwitchTerms {
  readonly runtime?: Runtime
  readonly credentials?: Credentials | undefined
  readonly timeoutMs?: number
  readonly records?: MetricsBySource
}

function accessAt({ url }: Pick<StandIns, 'url'>, terms: TwitchTerms = {}): TwitchAccess {
  const { runtime = WORLD, timeoutMs = 5000, records = new MetricsBySource(runtime.now) } = terms
  const credentials = 'credentials' in terms ? terms.credentials : STAND_IN_CREDENTIALS
  return new TwitchAccess(
    { baseUrl: `${url}/twitch-id`, credentials, timeoutMs },
    runtime,
    records.of('twitch'),
  )
}

export function twitchAt(standIns: Pick<StandIns, 'url'>, terms: TwitchTerms = {}): Twitch {
  const { runtime = WORLD, timeoutMs = 5000, records = new MetricsBySource(runtime.now) } = terms
  const options = { source: { name: 'Twitch' }, baseUrl: `${standIns.url}/twitch-api`, timeoutMs }
  return new Twitch(options, accessAt(standIns, { ...terms, records }), runtime, records)
}

export function igdbAt(standIns: Pick<StandIns, 'url'>, terms: TwitchTerms = {}): Igdb {
  const { runtime = WORLD, timeoutMs = 5000, records = new MetricsBySource(runtime.now) } = terms
  const options = { source: { name: 'IGDB' }, baseUrl: `${standIns.url}/igdb`, timeoutMs }
  return new Igdb(options, accessAt(standIns, { ...terms, records }), runtime, records)
}
