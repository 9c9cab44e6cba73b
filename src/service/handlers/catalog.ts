// Generated from the catalog by `ratecard types`. Do not edit: change the catalog.
import type {
  ConfigurableHandler as EngineConfigurableHandler,
  Handler as EngineHandler,
  Handlers as EngineHandlers,
  HandlerWithPreview as EngineHandlerWithPreview,
  JsonObject,
  StoringHandler as EngineStoringHandler,
} from 'ratecard/handler'

export interface Parameters {
  readonly 'bundle/app-dossier': {
    readonly appids: readonly number[]
  }
  readonly 'bundle/market-snapshot': {
    readonly countries: readonly string[]
    readonly deals_count: number
    readonly hype_limit: number
  }
  readonly 'game/metadata': {
    readonly name: string
  }
  readonly 'gamestore/app': {
    readonly appid: number
  }
  readonly 'gamestore/deals': {
    readonly min_discount: number
    readonly min_review: number
    readonly count: number
  }
  readonly 'gamestore/top-sellers': {
    readonly country: string
  }
  readonly 'memory/delete': {
    readonly id?: string
    readonly all: boolean
  }
  readonly 'memory/export': {
    readonly cursor?: string
  }
  readonly 'memory/search': {
    readonly query: string
    readonly k: number
    readonly tags?: readonly string[]
    readonly since?: string
  }
  readonly 'memory/stats': Record<never, never>
  readonly 'memory/write': {
    readonly text: string
    readonly tags?: readonly string[]
    readonly idempotency_key?: string
  }
  readonly ping: {
    readonly nonce?: string
  }
  readonly 'research/extract-structured': {
    readonly text: string
    readonly schema: JsonObject
  }
  readonly 'research/summarize': {
    readonly text: string
    readonly focus: string
  }
  readonly 'research/web-research': {
    readonly query: string
    readonly max_sources: number
  }
  readonly 'services/quote': {
    readonly need: string
    readonly budget: number
    readonly occasion: string
    readonly country: string
    readonly recipient: string
  }
  readonly 'streaming/hype': {
    readonly limit: number
  }
  readonly 'util/citation': {
    readonly doi: string
    readonly q: string
  }
  readonly 'util/delivery-orderby': {
    readonly arrive_by: string
    readonly country: string
    readonly service:
      | 'parcel_domestic'
      | 'parcel_express'
      | 'parcel_same_day'
      | 'parcel_international'
      | 'parcel_international_express'
      | 'letter'
      | 'card'
      | 'flowers'
      | 'cake'
      | 'custom_gift'
      | 'grocery'
      | 'furniture'
      | 'digital'
  }
  readonly 'util/email-verify': {
    readonly email: string
  }
  readonly 'util/extract': {
    readonly url: string
    readonly max_chars: number
    readonly overlap: number
  }
  readonly 'util/finid': {
    readonly iban: string
    readonly card_bin: string
    readonly vat: string
    readonly routing: string
  }
  readonly 'util/guard': {
    readonly text: string
    readonly kind: 'any' | 'document'
  }
  readonly 'util/json': {
    readonly op:
      | 'validate'
      | 'parse'
      | 'format'
      | 'minify'
      | 'sort'
      | 'repair'
      | 'infer_schema'
      | 'query'
      | 'pointer'
      | 'diff'
      | 'patch'
      | 'merge'
      | 'flatten'
      | 'unflatten'
      | 'to_csv'
      | 'from_csv'
      | 'stats'
      | 'hash'
    readonly data: string
    readonly schema: string
  }
  readonly 'util/mock': {
    readonly kind:
      | 'people'
      | 'companies'
      | 'products'
      | 'orders'
      | 'transactions'
      | 'addresses'
      | 'events'
      | 'logs'
      | 'reviews'
      | 'iot'
    readonly n: number
    readonly seed: string
  }
  readonly 'util/occasion': {
    readonly country: string
    readonly from_date: string
    readonly days: number
    readonly personal: string
  }
  readonly 'util/platform-spec': {
    readonly platform:
      | 'tiktok'
      | 'instagram'
      | 'youtube'
      | 'facebook'
      | 'x'
      | 'linkedin'
      | 'pinterest'
      | 'snapchat'
      | 'threads'
      | 'bluesky'
      | 'reddit'
      | 'mastodon'
      | 'twitch'
      | 'whatsapp'
    readonly type:
      | 'video'
      | 'short'
      | 'story'
      | 'image'
      | 'carousel'
      | 'text'
      | 'thumbnail'
      | 'profile'
      | 'cover'
      | 'live'
      | 'ad'
  }
  readonly 'util/repurpose': {
    readonly text: string
    readonly n: number
    readonly target_seconds: number
  }
  readonly 'util/sanctions': {
    readonly name: string
  }
  readonly 'util/site-intel': {
    readonly target: string
  }
  readonly 'util/tokencost': {
    readonly text: string
    readonly chars: number
    readonly tokens: number
    readonly model: string
    readonly output_tokens: number
  }
  readonly 'util/workday': {
    readonly country: string
    readonly region: string
    readonly date: string
    readonly days: number
  }
}

export type Handler<Name extends keyof Parameters> = EngineHandler<Parameters[Name]>
export type HandlerWithPreview<Name extends keyof Parameters> = EngineHandlerWithPreview<Parameters[Name]>
export type ConfigurableHandler<Name extends keyof Parameters> = EngineConfigurableHandler<Parameters[Name]>
export type StoringHandler<Name extends keyof Parameters> = EngineStoringHandler<Parameters[Name]>
export type Handlers = EngineHandlers<Parameters>
