import { existsSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

/*
 * Loads ES modules of packages as they are. tsx looks into each for TypeScript, and viem and mppx have more than a thousand:
 * without it a test file is loaded in two thirds of the CPU.
 */

const isPackage = (url) => url.startsWith('file:') && url.includes('/node_modules/')

/** By folder: whether its `.js` files are ES modules. */
const ofModules = new Map()

export async function resolve(specifier, context, next) {
  const { parentURL = '', conditions } = context
  if (/^\.\.?\//.test(specifier) && isPackage(parentURL) && conditions.includes('import')) {
    const url = new URL(specifier, parentURL)
    if (url.pathname.endsWith('.js') && hasModules(new URL('.', url)))
      return { url: url.href, format: 'module', shortCircuit: true }
  }
  return next(specifier, context)
}

export async function load(url, context, next) {
  if (context.format !== 'module' || !isPackage(url)) return next(url, context)
  return { format: 'module', source: await readFile(new URL(url)), shortCircuit: true }
}

function hasModules(folder) {
  const known = ofModules.get(folder.href)
  if (known !== undefined) return known
  const file = new URL('package.json', folder)
  const answer = existsSync(file)
    ? JSON.parse(readFileSync(file, 'utf8')).type === 'module'
    : hasModules(new URL('..', folder))
  ofModules.set(folder.href, answer)
  return answer
}
