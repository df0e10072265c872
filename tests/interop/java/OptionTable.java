import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;

import org.apache.commons.cli.Option;
import org.apache.commons.cli.Options;
import org.apache.rocketmq.srvutil.ServerUtil;
import org.apache.rocketmq.tools.command.MQAdminStartup;
import org.apache.rocketmq.tools.command.SubCommand;

/** Writes the options of every verb of mqadmin as JSON: {"verb": [["b", "brokerAddr", has a value, is required]]}. */
public class OptionTable {
    public static void main(String[] args) throws Exception {
        MQAdminStartup.initCommand();
        Field commands = MQAdminStartup.class.getDeclaredField("SUB_COMMANDS");
        commands.setAccessible(true);
        Map<String, String> table = new TreeMap<>();
        for (Object each : (Collection<?>) commands.get(null)) {
            SubCommand command = (SubCommand) each;
            Options options = command.buildCommandlineOptions(ServerUtil.buildCommandlineOptions(new Options()));
            List<Option> sorted = new ArrayList<>(options.getOptions());
            sorted.sort(Comparator.comparing(o -> o.getOpt() == null ? o.getLongOpt() : o.getOpt()));
            StringJoiner rows = new StringJoiner(", ", "[", "]");
            for (Option o : sorted) {
                String letter = o.getOpt() == null ? "" : o.getOpt();
                rows.add("[\"" + letter + "\", \"" + o.getLongOpt().trim() + "\", " + o.hasArg() + ", " + o.isRequired() + "]");
            }
            table.put(command.commandName(), rows.toString());
        }
        StringJoiner out = new StringJoiner(",\n", "{\n", "\n}\n");
        table.forEach((verb, rows) -> out.add("\"" + verb + "\": " + rows));
        Files.writeString(Path.of(args[0]), out.toString());
    }
}
