export { Mppx, tempo } from 'mppx/server'
