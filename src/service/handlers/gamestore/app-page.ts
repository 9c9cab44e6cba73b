import { Failure, type Warning } from 'ratecard/handler'
import type { Gamestore } from '../../sources/gamestore.ts'
import type { Details } from '../../sources/gamestore/details.ts'
import type { Title } from '../../sources/gamestore/title.ts'
import { attempt } from '../../sources/attempt.ts'

export interface AppPage {
  readonly details: Details
  readonly warnings: readonly Warning[]
}

/**
 * What the store says about an app: its page, else its entry in the item batch, which knows some apps whose page is not
 * shown in the country. Throws `not_found` when neither knows it, and the failure of the page when that is what is wrong.
 */
export async function readAppPage(
  store: Gamestore,
  appid: number,
  country: string,
  signal: AbortSignal,
): Promise<AppPage> {
  const page = await attempt(store.details(appid, country, signal))
  if (page.kind === 'done' && page.value) return { details: page.value, warnings: [] }
  const items = await attempt(store.items([appid], country, signal))
  const title = items.kind === 'done' ? items.value.get(appid) : undefined
  if (title) return { details: detailsOf(title), warnings: [withoutPage(store)] }
  for (const each of [page, items]) if (each.kind === 'failed') throw each.failure
  throw new Failure('not_found', `App ${appid} not found`)
}

function withoutPage({ source }: Gamestore): Warning {
  const message = 'No store page now or in this country: description, genres, languages and more are null'
  return { code: 'details_missing', message, source: source.name }
}

function detailsOf(title: Title): Details {
  const { releaseDate: date } = title
  return {
    name: title.name,
    type: title.type ?? 'other',
    shortDescription: null,
    developers: null,
    publishers: null,
    genres: null,
    categories: null,
    platforms: title.platforms,
    release: date === null ? null : { comingSoon: false, date, year: Number(date.slice(0, 4)), text: date },
    requiredAge: null,
    isFree: title.isFree,
    price: title.price,
    originalPrice: title.originalPrice,
    discountPercent: title.discountPercent,
    metacriticScore: null,
    achievements: null,
    languages: null,
    website: null,
    headerImage: title.headerImage,
  }
}
