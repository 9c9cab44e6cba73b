import type { StandIns } from '../../src/service/stand-ins/stand-ins.ts'
import { Igdb } from '../../src/service/sources/igdb.ts'
import { SourceRecords } from '../../src/service/sources/source-record.ts'
import { Twitch } from '../../src/service/sources/twitch.ts'
import {
  STAND_IN_CREDENTIALS,
  TwitchAccess,
  type Credentials,
} from '../../src/service/sources/twitch/access.ts'
import type { Runtime } from '../../src/service/sources/world.ts'
import { WORLD } from './gamestore.ts'

export interface TwitchTerms {
  readonly world?: Runtime
  readonly credentials?: Credentials | undefined
  readonly timeoutMs?: number
  readonly records?: SourceRecords
}

export function accessAt({ url }: Pick<StandIns, 'url'>, terms: TwitchTerms = {}): TwitchAccess {
  const { world = WORLD, timeoutMs = 5000, records = new SourceRecords(world.now) } = terms
  const credentials = 'credentials' in terms ? terms.credentials : STAND_IN_CREDENTIALS
  return new TwitchAccess(
    { baseUrl: `${url}/twitch-id`, credentials, timeoutMs },
    world,
    records.of('twitch'),
  )
}

export function twitchAt(standIns: Pick<StandIns, 'url'>, terms: TwitchTerms = {}): Twitch {
  const { world = WORLD, timeoutMs = 5000, records = new SourceRecords(world.now) } = terms
  const options = { source: { name: 'Twitch' }, baseUrl: `${standIns.url}/twitch-api`, timeoutMs }
  return new Twitch(options, accessAt(standIns, { ...terms, records }), world, records)
}

export function igdbAt(standIns: Pick<StandIns, 'url'>, terms: TwitchTerms = {}): Igdb {
  const { world = WORLD, timeoutMs = 5000, records = new SourceRecords(world.now) } = terms
  const options = { source: { name: 'IGDB' }, baseUrl: `${standIns.url}/igdb`, timeoutMs }
  return new Igdb(options, accessAt(standIns, { ...terms, records }), world, records)
}
