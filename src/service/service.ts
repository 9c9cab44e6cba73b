import type { Handlers } from './handlers/catalog.ts'
import { deals } from './handlers/gamestore/deals.ts'
import { topSellers } from './handlers/gamestore/top-sellers.ts'
import { ping } from './handlers/ping.ts'
import { quote } from './handlers/services/quote.ts'
import { deliveryOrderby } from './handlers/util/delivery-orderby.ts'
import { finid } from './handlers/util/finid.ts'
import { guard } from './handlers/util/guard.ts'
import { json } from './handlers/util/json.ts'
import { mock } from './handlers/util/mock.ts'
import { occasion } from './handlers/util/occasion.ts'
import { platformSpec } from './handlers/util/platform-spec.ts'
import { repurpose } from './handlers/util/repurpose.ts'
import { tokencost } from './handlers/util/tokencost.ts'
import { workday } from './handlers/util/workday.ts'
import { Gamestore, LIVE_GAMESTORE } from './sources/gamestore.ts'
import type { SourceRecords } from './sources/source-record.ts'
import type { World } from './sources/world.ts'

/** The outside of the service: where its sources are, and what they are called in answers. */
export interface Outside {
  readonly world: World
  /** Counts what becomes of the questions to every source. */
  readonly records: SourceRecords
  readonly steamStore: string
  readonly steamApi: string
  /** Set when stand-ins answer in the place of the sources. */
  readonly standIn: boolean
}

/** Every handler of the shipped catalog by name; the compiler knows when one is missing. */
export function createHandlers({ world, records, steamStore, steamApi, standIn }: Outside): Handlers {
  const source = standIn ? { source: { name: 'Sandbox stand-in for the game store' } } : {}
  const gamestore = new Gamestore(
    { ...LIVE_GAMESTORE, storeUrl: steamStore, apiUrl: steamApi, ...source },
    world,
    records,
  )
  return {
    'gamestore/deals': deals(gamestore),
    'gamestore/top-sellers': topSellers(gamestore),
    ping,
    'services/quote': quote,
    'util/delivery-orderby': deliveryOrderby,
    'util/finid': finid,
    'util/guard': guard,
    'util/json': json,
    'util/mock': mock,
    'util/occasion': occasion,
    'util/platform-spec': platformSpec,
    'util/repurpose': repurpose,
    'util/tokencost': tokencost,
    'util/workday': workday,
  }
}
