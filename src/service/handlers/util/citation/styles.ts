import type { Work } from '../../../sources/works/work.ts'
import { apa } from './apa.ts'
import { chicago } from './chicago.ts'
import { harvard } from './harvard.ts'
import { ieee } from './ieee.ts'
import { mla } from './mla.ts'
import { vancouver } from './vancouver.ts'
import { typeset } from './fields.ts'

/** The reference in six styles, each in plain text. */
export function references(work: Work) {
  const set = typeset(work)
  return {
    apa: apa(set),
    mla: mla(set),
    chicago: chicago(set),
    harvard: harvard(set),
    vancouver: vancouver(set),
    ieee: ieee(set),
  }
}
