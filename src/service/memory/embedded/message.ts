import type { Row, Value } from '../database.ts'

/** What the thread of the embedded database is asked. */
export interface Task {
  readonly id: number
  readonly work: Work
}

export type Work =
  | { readonly kind: 'query'; readonly sql: string; readonly values: readonly Value[] }
  | { readonly kind: 'script'; readonly script: string }
  | { readonly kind: 'close' }

export type Reply =
  | { readonly id: number; readonly kind: 'rows'; readonly rows: readonly Row[] }
  | {
      readonly id: number
      readonly kind: 'fault'
      readonly condition: string | undefined
      readonly reason: string
    }
