/*
 * Loaded before a server (`node --import`): replaces the library by `counted-lmdb.mjs`.
 */
import { register } from 'node:module'

const counted = new URL('counted-lmdb.mjs', import.meta.url).href
const hooks = `export async function resolve(specifier, context, next) {
  if (specifier === 'lmdb' && context.parentURL !== ${JSON.stringify(counted)})
    return { url: ${JSON.stringify(counted)}, shortCircuit: true }
  return next(specifier, context)
}`
register(`data:text/javascript,${encodeURIComponent(hooks)}`)
