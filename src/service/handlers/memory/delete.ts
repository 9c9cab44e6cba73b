import { Failure, InvalidParameter } from 'ratecard/handler'
import type { Memories } from '../../memory/memories.ts'
import { namespaceOfKey } from '../../memory/namespace.ts'
import type { Handler } from '../catalog.ts'
import { SOURCE } from './validate.ts'

/** Deletes for good what the wallet that has signed in has written: one memory, or all. */
export function deleteOwn(memories: Memories): Handler<'memory/delete'> {
  return async ({ id, all }, { signer }) => {
    if (signer === undefined)
      throw new Error('a memory is deleted by its wallet: the tool needs "requires: signer"')
    if ((id === undefined) === !all) throw new InvalidParameter('id', 'send either id, or all: true')
    const wallet = namespaceOfKey(signer)
    const store = await memories.store()
    const deleted = id === undefined ? await store.clear(wallet) : await store.delete(wallet, id)
    if (id !== undefined && deleted === 0)
      throw new Failure('not_found', 'This wallet has no memory of this id')
    return { source: SOURCE, body: { deleted } }
  }
}
