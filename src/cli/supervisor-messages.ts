import type { Mark } from '../engine/catalog/load-catalog.ts'
import type { AccessRecord } from '../engine/base/access-record.ts'
import { isJsonObject } from '../engine/base/json.ts'
import type { PaymentRecord } from '../engine/ledger/payment-record.ts'
import type { ConsoleKeys } from '../console/console-access.ts'
import type { StopSignal } from './signals.ts'

/** What a process serves that a supervisor has started. */
export interface Served {
  /** Routes and tools that have their handlers. */
  readonly names: readonly string[]
  readonly port: number
  /** Undefined when it has no console. */
  readonly consoleKeys: ConsoleKeys | undefined
}

/** One of the processes that serve together, counted from 0. The first one has what exists once: the console. */
export interface Worker {
  readonly place: number
  readonly of: number
}

/** What the first process shows of the others. */
export type News =
  | { readonly kind: 'access'; readonly access: AccessRecord }
  | { readonly kind: 'change'; readonly previous: PaymentRecord; readonly next: PaymentRecord }

/** What the supervisor says to a process. */
export type Order =
  /** `before`: what is served already, by the process that is to be replaced or by another one beside it. */
  | { readonly kind: 'begin'; readonly worker: Worker; readonly before?: Served }
  | { readonly kind: 'stop'; readonly signal: StopSignal }
  | { readonly kind: 'reload' | 'leave' }
  /** To each process: what has it counted? */
  | { readonly kind: 'count'; readonly question: number }
  /** To the process that has asked: what each has counted. */
  | { readonly kind: 'counted'; readonly counts: readonly object[] }
  /** To the first process: what has happened in another one. */
  | { readonly kind: 'news'; readonly news: News }

/** What a process says to its supervisor. */
export type Report =
  /** It can be told what to do. */
  | { readonly kind: 'joined' }
  /** It has read its catalog, or tried to. */
  | { readonly kind: 'read'; readonly files: readonly (readonly [string, Mark])[] }
  | { readonly kind: 'serving'; readonly served: Served }
  /** It takes no more connections. */
  | { readonly kind: 'left' }
  /** It asks what all have counted. */
  | { readonly kind: 'ask' }
  | { readonly kind: 'count'; readonly question: number; readonly count: object }
  /** Something has happened that the first process shows. */
  | { readonly kind: 'news'; readonly news: News }

/** Messages between these processes come from this program. */
export function isA<Message>(message: unknown): message is Message {
  return isJsonObject(message) && 'kind' in message
}
