/** ACLs, identities, quotas, and the ensemble's own configuration. */

import type { Command, CommandOption } from '../command.ts';

const stat: CommandOption = { flags: '-s', about: 'the Stat too' };

const loadAccess = () => import('../access.ts');
const loadQuotas = () => import('../quotas.ts');
const loadConfig = () => import('../config.ts');

// biome-ignore format: a table is read down its columns
export const accessCommands: Readonly<Record<string, Command>> = {
  getAcl: {
    usage: 'getAcl <path>',
    about: 'prints who may do what with a node',
    group: 'access',
    options: [stat],
    args: ['path'],
    run: async (context, args, options) => (await loadAccess()).getAcl(context, args, options),
  },
  setAcl: {
    usage: 'setAcl <path> <acl>',
    about: 'sets it: scheme:id:perms, several with commas, perms out of cdrwa',
    group: 'access',
    options: [
      stat,
      { flags: '-v <version>', about: 'only if the version of the ACL is this one' },
      { flags: '-R',           about: 'all below it too' },
      { flags: '-y, --yes',    about: 'does not ask' },
    ],
    args: ['path', 'text'],
    writes: true,
    run: async (context, args, options) => (await loadAccess()).setAcl(context, args, options),
  },
  addauth: {
    usage: 'addauth <scheme> [auth]',
    about: 'proves who we are, for this session: addauth digest user:password',
    group: 'access',
    options: [],
    args: [['digest', 'sasl', 'x509', 'super']],
    run: async (context, args) => (await loadAccess()).addAuth(context, args),
  },
  whoami: {
    usage: 'whoami',
    about: 'says who the server takes us for',
    group: 'access',
    options: [],
    run: async (context) => (await loadAccess()).whoAmI(context),
  },
  whois: {
    usage: 'whois <session-or-path>',
    about: 'says which client owns a session, or an ephemeral node',
    group: 'access',
    options: [],
    args: ['path'],
    run: async (context, args) => (await import('../whois.ts')).whois(context, args),
  },
  setquota: {
    usage: 'setquota <path>',
    about: 'limits what may stand at and below a node',
    group: 'access',
    options: [
      { flags: '-n <count>', about: 'nodes, and the server only warns' },
      { flags: '-b <bytes>', about: 'bytes, and the server only warns' },
      { flags: '-N <count>', about: 'nodes, and no more (where quotas are enforced)' },
      { flags: '-B <bytes>', about: 'bytes, and no more (where quotas are enforced)' },
    ],
    args: ['path'],
    writes: true,
    run: async (context, args, options) => (await loadQuotas()).setQuota(context, args, options),
  },
  listquota: {
    usage: 'listquota <path>',
    about: 'prints the limits of a node, and what stands there now',
    group: 'access',
    options: [],
    args: ['path'],
    run: async (context, args) => (await loadQuotas()).listQuota(context, args),
  },
  delquota: {
    usage: 'delquota <path>',
    about: 'takes the limits away, all of them or those that are named',
    group: 'access',
    options: [
      { flags: '-n', about: 'the one of nodes' },
      { flags: '-b', about: 'the one of bytes' },
      { flags: '-N', about: 'the hard one of nodes' },
      { flags: '-B', about: 'the hard one of bytes' },
    ],
    args: ['path'],
    writes: true,
    run: async (context, args, options) => (await loadQuotas()).deleteQuota(context, args, options),
  },
  config: {
    usage: 'config [words...]',
    about: 'prints the configuration of the ensemble; get PATH [key], set PATH key=value, watch PATH [key]: values that programs share',
    group: 'ensemble',
    options: [
      { flags: '-c', about: 'where its clients connect' },
      stat,
      { flags: '-w', about: 'and watch it' },
    ],
    args: [['get', 'set', 'watch'], 'path'],
    run: async (context, args, options) =>
      args.length === 0
        ? (await loadConfig()).showConfig(context, options)
        : (await import('../config-commands.ts')).configCommand(context, args, options),
  },
  reconfig: {
    usage: 'reconfig',
    about: 'changes who is in the ensemble',
    group: 'ensemble',
    options: [
      stat,
      { flags: '-v <version>',      about: 'only if the configuration in force is this one, in hex' },
      { flags: '--add <servers>',   about: 'server.1=host:port:port;port, several with commas (-add)' },
      { flags: '--remove <ids>',    about: 'by their numbers, several with commas (-remove)' },
      { flags: '--members <list>',  about: 'a whole new membership (-members)' },
      { flags: '--file <file>',     about: 'the same out of a file (-file)', value: 'file' },
    ],
    oneDash: ['add', 'remove', 'members', 'file'],
    writes: true,
    run: async (context, args, options) => (await loadConfig()).reconfig(context, args, options),
  },
};
