import { parseGwei } from '../gwei.ts'
import { findNetwork } from '../networks.ts'
import { error, type Issue } from './issue.ts'
import type { Subject } from './subject.ts'
import { didYouMean } from './suggest.ts'

const LIMITS = ['payments', 'x402', 'limits']

/** Limits are said of networks that are offered, each under one of its names. */
export function checkLimits({ declared, document }: Subject): Issue[] {
  const { networks = [], limits = {} } = declared.payments?.x402 ?? {}
  const offered = new Set(networks.flatMap((name) => findNetwork(name)?.id ?? []))
  const seen = new Set<string>()
  return Object.keys(limits).flatMap((name) => {
    const at = document.atKey([...LIMITS, name])
    const network = findNetwork(name)
    if (network === undefined) {
      const sentence = `"${name}" is no known network${didYouMean(name, networks)}; limits are for networks of the list: ${networks.join(', ')}`
      return [error('network_unknown', at, sentence)]
    }
    if (!offered.has(network.id)) {
      const sentence = `${network.title} (${network.id}) is not offered: add it to "networks", or leave its limits out`
      return [error('network_not_offered', at, sentence)]
    }
    if (seen.has(network.id)) {
      const sentence = `${network.title} (${network.id}, ${network.nickname}) has its limits already`
      return [error('list_repeats', at, sentence)]
    }
    seen.add(network.id)
    return checkFee(document, name)
  })
}

function checkFee(document: Subject['document'], name: string): Issue[] {
  const path = [...LIMITS, name, 'max_fee_gwei']
  const spelling = document.spelling(path)
  if (spelling === undefined || parseGwei(spelling) !== undefined) return []
  const sentence = `${spelling} is no price of gas: write gwei as a decimal greater than zero, with at most nine places, like 5 or 0.05`
  return [error('fee_invalid', document.at(path), sentence)]
}
