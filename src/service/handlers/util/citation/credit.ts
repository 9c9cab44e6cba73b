import type { Contributor, Work } from '../../../sources/works/work.ts'

/** Whose work it is called: its authors, or for want of them its editors. */
export interface Credit {
  readonly people: readonly Contributor[]
  /** Number of all, including those that are not listed. */
  readonly total: number
  readonly role: 'author' | 'editor'
}

export function creditOf({ authors, authorCount, editors }: Work): Credit {
  return authors.length > 0 || editors.length === 0
    ? { people: authors, total: authorCount, role: 'author' }
    : { people: editors, total: editors.length, role: 'editor' }
}

/** The editors of the volume, where the credit is not theirs already. */
export function editorsOf({ authors, editors }: Work): readonly Contributor[] {
  return authors.length > 0 ? editors : []
}
